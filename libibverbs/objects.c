/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Completion channels and the extended queue pair. */
#include <errno.h>

#include "dropin.h"

DROPIN_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_create_comp_channel) real;

	if (provider)
		return provider->create_comp_channel(context);
	real = DROPIN_REAL(ibv_create_comp_channel, "IBVERBS_1.0");
	return real ? real(context) : NULL;
}

DROPIN_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(channel->context->device);
	__typeof__(&ibv_destroy_comp_channel) real;

	if (provider)
		return provider->destroy_comp_channel(channel);
	real = DROPIN_REAL(ibv_destroy_comp_channel, "IBVERBS_1.0");
	return real ? real(channel) : ENOSYS;
}

/*
 * The real library stores the extended QP in a place that differs between releases, so the provider
 * returns its own.
 */
DROPIN_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(qp->context->device);
	__typeof__(&ibv_qp_to_qp_ex) real;

	if (provider)
		return provider->qp_to_qp_ex(qp);
	real = DROPIN_REAL(ibv_qp_to_qp_ex, "IBVERBS_1.6");
	return real ? real(qp) : NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Writes a gnuplot script and its data to a directory, and runs gnuplot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

enum { COLOURS = 13 };

/* Colour of each scheme; related schemes have similar hues. */
static const uint32_t colours[COLOURS] = {
	0x000000, 0x009e73, 0x88ccee, 0x2f7fc1, 0x0b3c6f, 0xf0a030, 0xc04000,
	0x808080, 0x8c564b, 0xd98cc0, 0x8a2be2, 0x7fb000, 0xe0218a,
};

static FILE *open_in(const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "w");
}

static bool is_swept(const struct run_result *r)
{
	return !strcmp(r->sc.name, "one-way") && !r->predicted;
}

/* Writes one block of lines per scheme, by depth. */
static int write_sweep(const char *folder, const struct run_result *results, unsigned int count)
{
	FILE *out = open_in(folder, "depth.dat");

	if (!out)
		return -1;
	for (const struct scheme *const *s = schemes; *s; s++) {
		if ((*s)->flags & SCHEME_CONTROL)
			continue;
		fprintf(out, "# %s: depth, MB/s, p99 ms, updates per message\n", (*s)->name);
		for (unsigned int i = 0; i < count; i++)
			if (is_swept(&results[i]) && results[i].scheme == *s)
				fprintf(out, "%u %.3f %.4f %.4f\n", results[i].sc.depth,
					run_goodput_mb(&results[i]),
					(double)results[i].side[1].result.p99_ns / 1e6,
					run_updates_per_message(&results[i]));
		fputs("\n\n", out);
	}
	return fclose(out);
}

/* Plots of the data of write_sweep() */
static const struct curve {
	const char *file, *title, *label;
	unsigned int column;
	bool logarithmic;
} curves[] = {
	{ "goodput.png", "One way to a slow receiver: goodput", "MB/s", 2, false },
	{ "p99.png", "One way to a slow receiver: latency, 99 %", "milliseconds", 3, true },
	{ "control.png", "One way to a slow receiver: updates (rnr and credits have none)",
	  "updates per message", 4, true },
};

static void write_curve(FILE *out, const struct curve *curve)
{
	const char *separator = "plot";
	unsigned int block = 0;

	fprintf(out, "set output '%s'\nset title '%s'\nset ylabel '%s'\n", curve->file,
		curve->title, curve->label);
	fprintf(out, "%s logscale y\n", curve->logarithmic ? "set" : "unset");
	for (const struct scheme *const *s = schemes; *s; s++) {
		if ((*s)->flags & SCHEME_CONTROL)
			continue;
		fprintf(out,
			"%s 'depth.dat' index %u using 1:%u smooth unique with linespoints title "
			"'%s'",
			separator, block++, curve->column, (*s)->name);
		separator = ",\\\n ";
	}
	fputc('\n', out);
}

/* Writes a column per scheme and a row per scenario. */
static int write_bars(const char *folder, const struct run_result *results, unsigned int count)
{
	FILE *out = open_in(folder, "scenarios.dat");

	if (!out)
		return -1;
	fputs("scenario", out);
	for (const struct scheme *const *s = schemes; *s; s++)
		if (!((*s)->flags & SCHEME_CONTROL))
			fprintf(out, " %s", (*s)->name);
	for (const struct scenario *sc = scenarios; sc->name; sc++) {
		if (sc->only_control)
			continue;
		fprintf(out, "\n%s", sc->name);
		for (const struct scheme *const *s = schemes; *s; s++) {
			const struct run_result *found = NULL;

			if ((*s)->flags & SCHEME_CONTROL)
				continue;
			for (unsigned int i = 0; i < count && !found; i++)
				if (results[i].scheme == *s && !results[i].predicted &&
				    !strcmp(results[i].sc.name, sc->name))
					found = &results[i];
			fprintf(out, " %.4f", found ? run_updates_per_message(found) : 0);
		}
	}
	fputc('\n', out);
	return fclose(out);
}

static int write_script(const char *folder)
{
	FILE *out = open_in(folder, "plots.gp");

	if (!out)
		return -1;
	fputs("set terminal pngcairo size 1100,700\nset key outside right\nset grid\n", out);
	for (unsigned int i = 0; i < COLOURS; i++)
		fprintf(out, "set linetype %u lc rgb '#%06x' lw 2 pt %u ps 1.3\n", i + 1,
			colours[i], i + 1);
	fprintf(out, "set linetype cycle %d\n", COLOURS);
	fputs("set logscale x 2\nset xrange [3.7:140]\nset xtics (4, 8, 16, 32, 128)\n"
	      "set format y '%g'\nset xlabel 'receives promised'\n",
	      out);
	for (unsigned int i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
		write_curve(out, &curves[i]);
	fputs("unset logscale\nset xrange [*:*]\nset xtics auto\n"
	      "set output 'scenarios.png'\nset title 'Updates per message'\n"
	      "set style data histogram\nset style fill solid 0.8\nset xlabel ''\n"
	      "set xtics rotate by -20\nset ylabel 'updates per message'\n"
	      "plot for [i=2:*] 'scenarios.dat' using i:xtic(1) title columnheader(i)\n",
	      out);
	return fclose(out);
}

int plot_all(const char *folder, const struct run_result *results, unsigned int count)
{
	char command[600];

	if (mkdir(folder, 0777) && errno != EEXIST)
		return -1;
	if (write_sweep(folder, results, count) || write_bars(folder, results, count) ||
	    write_script(folder))
		return -1;
	snprintf(command, sizeof(command), "cd '%s' && gnuplot plots.gp", folder);
	errno = ENOENT;
	return system(command) ? -1 : 0;
}

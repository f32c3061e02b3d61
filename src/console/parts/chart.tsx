import { useEffect, useRef, useState, type JSX } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../app/theme.ts";
import "./chart.css";

export interface ChartLine {
  readonly title: string;
  /** A colour of `tokens.css`, such as `--chart-changes`. */
  readonly color: string;
  readonly values: readonly number[];
}

export interface ChartProps {
  readonly label: string;
  /** Seconds since 1970, rising. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}

const heightPixels = 220;

/**
 * Draws counts over time. The legend says the values under the pointer; what a screen reader gets
 * is `label`.
 */
export function Chart(props: ChartProps): JSX.Element {
  const theme = useTheme();
  const isDark = useSystemDark();
  // Colours are read once, so another theme is another plot.
  return <Plot key={`${theme} ${isDark}`} {...props} />;
}

function Plot({ label, times, lines }: ChartProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const plot = new UPlot(
      optionsOf(element, lines),
      [[...times], ...lines.map(({ values }) => [...values])],
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: heightPixels }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, lines]);
  return <div className="chart" ref={frame} role="img" aria-label={label} />;
}

function optionsOf(element: HTMLElement, lines: readonly ChartLine[]): UPlot.Options {
  const muted = colorOf(element, "--muted");
  const grid = { stroke: colorOf(element, "--border"), width: 1 };
  const axis = { stroke: muted, grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: Math.max(200, element.clientWidth),
    height: heightPixels,
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70 },
      {
        ...axis,
        size: 48,
        space: 36,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6],
      },
    ],
    series: [
      { value: (_, time) => (time === null ? "" : new Date(time * 1_000).toLocaleString()) },
      ...lines.map(({ title, color }) => ({
        label: title,
        stroke: colorOf(element, color),
        fill: `color-mix(in srgb, ${colorOf(element, color)} 9%, transparent)`,
        width: 1.75,
        points: { show: false },
        value: (_: UPlot, value: number | null) => (value === null ? "" : value.toLocaleString()),
      })),
    ],
  };
}

/** Gives what a colour is in this theme: a custom property itself holds both. */
function colorOf(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

function useSystemDark(): boolean {
  const [isDark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const listen = (): void => setDark(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return isDark;
}

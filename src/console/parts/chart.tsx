import { useEffect, useRef, type JSX } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../app/theme.ts";
import { createStore } from "./store.ts";
import { sum } from "./sum.ts";
import "./chart.css";

interface ChartLine {
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

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const systemDark = createStore(darkQuery.matches);
darkQuery.addEventListener("change", () => systemDark.set(darkQuery.matches));

/**
 * Draws counts over time. The legend shows the values under the pointer. A screen reader gets
 * `label`.
 */
export function Chart(props: ChartProps): JSX.Element {
  const theme = useTheme();
  const isDark = systemDark.useValue();
  // Colours are read once, so another theme needs another plot.
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
      { ...axis, grid: { show: false }, size: 32, space: 70, values: (_, ticks) => ticks.map(tickOf) },
      {
        ...axis,
        size: 48,
        space: 36,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6],
      },
    ],
    series: [
      { label: "Time", value: (_, time) => (time === null ? "in all" : formatTime(new Date(time * 1_000))) },
      ...lines.map(({ title, color, values }) => ({
        label: title,
        stroke: colorOf(element, color),
        fill: `color-mix(in srgb, ${colorOf(element, color)} 9%, transparent)`,
        width: 1.75,
        points: { show: false },
        // Without a pointer over the chart, the legend shows the sums.
        value: (_: UPlot, value: number | null) => (value ?? sum(values)).toLocaleString("en"),
      })),
    ],
  };
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

function formatTime(at: Date): string {
  return `${day.format(at)}, ${time.format(at)}`;
}

/** Returns the label of a tick: the day at midnight, otherwise the time of day. */
function tickOf(seconds: number): string {
  const at = new Date(seconds * 1_000);
  return at.getHours() === 0 && at.getMinutes() === 0 ? day.format(at) : time.format(at);
}

/**
 * Returns a colour in the current theme. The custom property itself holds the colours of both
 * themes.
 */
function colorOf(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

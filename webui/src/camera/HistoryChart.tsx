// One chart of a camera's history: drawn by uPlot, its values at the cursor as text beside its name.

import styles from './HistoryChart.module.css'

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

import { classes } from '../ui/classes'
import { isolated, type Chart, type Line } from './charts'
import { onColoursChanged, resolvedColour } from '../ui/palette'

export interface HistoryChartProps {
  chart: Chart
  at_ms: readonly number[]
  from_ms: number
  to_ms: number
  /** The step whose values are shown; -1: none is known. */
  activeIndex: number
  /** The step to put the cursor at, where the keyboard moves it; null: the pointer does. */
  keyboardIndex: number | null
  onHover: (at: number | null) => void
}

const HEIGHT_PX = 118
/** All charts of a page that are to share one cursor. */
const SYNC = 'camera-history'

export function HistoryChart({ chart, at_ms, from_ms, to_ms, activeIndex, keyboardIndex, onHover }: HistoryChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const latest = useRef({ chart, from_ms, to_ms, onHover })
  latest.current = { chart, from_ms, to_ms, onHover }
  const shape = chart.lines.map(({ name, kind }) => `${name}:${kind}`).join(' ')

  // biome-ignore lint/correctness/useExhaustiveDependencies: lines of another number or kind need another plot
  useEffect(() => {
    const element = place.current
    if (!element) return
    const painter = new Painter(element, () => latest.current)
    plot.current = painter.plot
    return () => {
      painter.close()
      plot.current = null
    }
  }, [shape])
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new plot has no data yet
  useEffect(() => {
    plot.current?.setData([[...at_ms], ...chart.lines.map(({ drawn }) => [...drawn])])
  }, [at_ms, chart, shape])
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new plot has no cursor yet
  useEffect(() => {
    const at = keyboardIndex === null ? undefined : at_ms[keyboardIndex]
    if (!plot.current || at === undefined) return
    plot.current.setCursor({ left: plot.current.valToPos(at, 'x'), top: HEIGHT_PX / 2 }, false)
  }, [keyboardIndex, at_ms, shape])

  return (
    <figure class={styles.chart} data-testid={`chart-${chart.key}`}>
      <figcaption>
        <h3 title={chart.note}>
          {chart.title} <span class="muted">{chart.unit}</span>
        </h3>
        <Readout lines={chart.lines} activeIndex={activeIndex} note={chart.note} />
      </figcaption>
      <div ref={place} class={styles.plot} style={{ height: `${HEIGHT_PX}px` }} aria-hidden="true" />
    </figure>
  )
}

function Readout({ lines, activeIndex, note }: { lines: readonly Line[]; activeIndex: number; note: string }) {
  const named = lines.filter(({ words }) => words)
  if (named.length === 0) return <p class={`${styles.readout} muted`}>{note}</p>
  return (
    <ul class={styles.readout}>
      {[...named].sort(LINES_LAST).map(({ name, colour, kind, words }) => (
        <li key={name} data-line={name}>
          <span class={classes(styles.key, styles[kind])} style={{ '--key': colour }} aria-hidden="true" />
          {name} <strong>{words?.(activeIndex)}</strong>
        </li>
      ))}
    </ul>
  )
}

/** Areas lie under each other, the first at the bottom; they are read from there, and lines after them. */
function LINES_LAST(a: Line, b: Line): number {
  const rank = ({ kind }: Line) => (kind === 'area' || kind === 'steps' ? 0 : 1)
  return rank(a) - rank(b) || (rank(a) === 0 ? -1 : 0)
}

type Shown = Pick<HistoryChartProps, 'chart' | 'from_ms' | 'to_ms' | 'onHover'>

/** One uPlot and what keeps it fitting its place and its theme. */
class Painter {
  readonly plot: uPlot
  private readonly resizes: ResizeObserver
  private readonly forgetColours: () => void
  private colours: string[] = []
  private muted = ''
  private grid = ''

  constructor(
    private readonly element: HTMLElement,
    private readonly shown: () => Shown,
  ) {
    this.resolve()
    this.plot = new uPlot(this.options(), [[]], element)
    this.resizes = new ResizeObserver(() => this.plot.setSize({ width: element.clientWidth, height: HEIGHT_PX }))
    this.resizes.observe(element)
    this.forgetColours = onColoursChanged(this.repaint)
  }

  close(): void {
    this.resizes.disconnect()
    this.forgetColours()
    this.plot.destroy()
  }

  private readonly repaint = () => {
    this.resolve()
    this.plot.redraw(false, true)
  }

  /** A canvas cannot name the style sheet's colours. */
  private resolve(): void {
    const resolved = (colour: string) => resolvedColour(this.element, colour)
    this.colours = this.shown().chart.lines.map(({ colour }) => resolved(colour))
    this.grid = resolved('var(--line)')
    this.muted = resolved('var(--muted)')
  }

  private options(): uPlot.Options {
    const axis = { stroke: () => this.muted, font: '10px system-ui, sans-serif', ticks: { show: false }, gap: 5 }
    const grid = { stroke: () => this.grid, width: 1 }
    const { chart } = this.shown()
    return {
      width: this.element.clientWidth,
      height: HEIGHT_PX,
      ms: 1,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false }, sync: { key: SYNC, setSeries: false } },
      scales: {
        x: { time: true, range: () => [this.shown().from_ms, this.shown().to_ms] },
        y: { range: (_plot, _low, high) => this.reach(high) },
      },
      series: [{}, ...chart.lines.map((line, n) => this.series(line, n))],
      axes: [
        { ...axis, size: 18, grid: { show: false }, space: 70, values: HOURS },
        { ...axis, size: 40, space: 26, grid },
      ],
      hooks: {
        setCursor: [({ cursor }) => this.shown().onHover(cursor.left === undefined || cursor.left < 0 ? null : (cursor.idx ?? null))],
      },
    }
  }

  private reach(high: number | null): [number, number] {
    const { least, most } = this.shown().chart
    return [0, Math.min(most ?? Infinity, Math.max(least, (high ?? 0) * 1.08))]
  }

  private series({ kind }: Line, n: number): uPlot.Series {
    const colour = () => this.colours[n] ?? ''
    const filled = kind === 'area' || kind === 'steps'
    const lone: uPlot.Series.Points = {
      show: kind !== 'dashed',
      size: 4,
      fill: colour,
      filter: () => isolated(this.shown().chart.lines[n]?.drawn ?? []),
    }
    return {
      stroke: colour,
      width: filled ? 0 : 1.5,
      ...(filled && { fill: colour }),
      ...(kind === 'steps' && STEPPED && { paths: STEPPED }),
      ...(kind === 'dashed' && { dash: [5, 4] }),
      points: lone,
    }
  }
}

/** A share holds for its whole step. */
const STEPPED = uPlot.paths.stepped?.({ align: 1 })

/** Times of day, and days where there are several: [from steps of, format, then what a new year, day, hour adds]. */
const HOURS: uPlot.Axis.Values = [
  [86_400_000, '{D} {MMM}', null, null, null, null, null, null, 1],
  [60_000, '{HH}:{mm}', '\n{D} {MMM}', null, null, null, null, null, 1],
  [1_000, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1],
]

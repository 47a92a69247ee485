// One chart of a camera's history: drawn by uPlot, its values at the cursor as text beside its name.

import styles from './HistoryChart.module.css'

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

import { classes } from '../classes'
import { isolated, type Chart, type Line } from '../../history/charts'
import { THEME_CHANGED } from '../../theme'

export interface HistoryChartProps {
  chart: Chart
  at_ms: readonly number[]
  from_ms: number
  to_ms: number
  /** The step whose values are told; -1: none is known. */
  told: number
  /** The step to put the cursor at, where the keyboard moves it; null: the pointer does. */
  keyed: number | null
  onPoint: (at: number | null) => void
}

const HEIGHT_PX = 118
/** All charts of a page that are to share one cursor. */
const SYNC = 'camera-history'

export function HistoryChart({ chart, at_ms, from_ms, to_ms, told, keyed, onPoint }: HistoryChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const latest = useRef({ chart, from_ms, to_ms, onPoint })
  latest.current = { chart, from_ms, to_ms, onPoint }
  const shape = chart.lines.map(({ name, kind }) => `${name}:${kind}`).join(' ')

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
  useEffect(() => {
    plot.current?.setData([[...at_ms], ...chart.lines.map(({ drawn }) => [...drawn])])
  }, [at_ms, chart, shape])
  useEffect(() => {
    const at = keyed === null ? undefined : at_ms[keyed]
    if (!plot.current || at === undefined) return
    plot.current.setCursor({ left: plot.current.valToPos(at, 'x'), top: HEIGHT_PX / 2 }, false)
  }, [keyed, at_ms, shape])

  return (
    <figure class={styles.chart} data-testid={`chart-${chart.key}`}>
      <figcaption>
        <h3 title={chart.note}>
          {chart.title} <span class="muted">{chart.unit}</span>
        </h3>
        <Readout lines={chart.lines} told={told} note={chart.note} />
      </figcaption>
      <div ref={place} class={styles.plot} style={{ height: `${HEIGHT_PX}px` }} aria-hidden="true" />
    </figure>
  )
}

function Readout({ lines, told, note }: { lines: readonly Line[]; told: number; note: string }) {
  const named = lines.filter(({ words }) => words)
  if (named.length === 0) return <p class={`${styles.readout} muted`}>{note}</p>
  return (
    <ul class={styles.readout}>
      {[...named].sort(LINES_LAST).map(({ name, colour, kind, words }) => (
        <li key={name} data-line={name}>
          <span class={classes(styles.key, styles[kind])} style={{ '--key': colour }} aria-hidden="true" />
          {name} <strong>{words?.(told)}</strong>
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

type Shown = Pick<HistoryChartProps, 'chart' | 'from_ms' | 'to_ms' | 'onPoint'>

/** One uPlot and what keeps it fitting its place and its theme. */
class Painter {
  readonly plot: uPlot
  private readonly resizes: ResizeObserver
  private readonly scheme = window.matchMedia('(prefers-color-scheme: dark)')
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
    this.scheme.addEventListener('change', this.repaint)
    window.addEventListener(THEME_CHANGED, this.repaint)
  }

  close(): void {
    this.resizes.disconnect()
    this.scheme.removeEventListener('change', this.repaint)
    window.removeEventListener(THEME_CHANGED, this.repaint)
    this.plot.destroy()
  }

  private readonly repaint = () => {
    this.resolve()
    this.plot.redraw(false, true)
  }

  /** A canvas cannot name the style sheet's colours. */
  private resolve(): void {
    const resolved = (colour: string) => {
      this.element.style.color = colour
      return getComputedStyle(this.element).color
    }
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
        setCursor: [({ cursor }) => this.shown().onPoint(cursor.left === undefined || cursor.left < 0 ? null : (cursor.idx ?? null))],
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

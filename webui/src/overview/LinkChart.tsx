// What the camera's link carried in the window, and the picture size it led to.

import styles from './LinkChart.module.css'

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

import { linkColumns, type LinkColumns } from './series'
import { onColoursChanged, resolvedColour } from '../ui/palette'
import type { History } from '../api/types'

export interface LinkChartProps {
  bandwidth: History
  sizes: History
  window_s: number
  height: number
  label: string
}

export function LinkChart({ bandwidth, sizes, window_s, height, label }: LinkChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const columns = linkColumns(bandwidth, sizes, window_s)

  // biome-ignore lint/correctness/useExhaustiveDependencies: columns that change go into the chart that is there, below
  useEffect(() => {
    const element = place.current
    if (!element) return
    let palette = paletteOf(element)
    const plot = new uPlot(options(element.clientWidth, height, window_s, () => palette), data(columns), element)
    chart.current = plot
    const fit = () => plot.setSize({ width: element.clientWidth, height })
    const resizes = new ResizeObserver(fit)
    resizes.observe(element)
    const repaint = () => {
      palette = paletteOf(element)
      plot.redraw(false, true)
    }
    const forgetColours = onColoursChanged(repaint)
    return () => {
      resizes.disconnect()
      forgetColours()
      plot.destroy()
      chart.current = null
    }
  }, [height, window_s])

  useEffect(() => chart.current?.setData(data(columns)))

  return <div ref={place} class={styles.linkChart} style={{ height: `${height}px` }} role="img" aria-label={label} />
}

function data({ at_s, bandwidth_mbps, size_px }: LinkColumns): uPlot.AlignedData {
  return [at_s, bandwidth_mbps, size_px]
}

/** A size holds until the next one: drawn as steps. */
const STEPPED = uPlot.paths.stepped?.({ align: 1 })

interface Palette {
  muted: string
  line: string
  link: string
  fill: string
  size: string
}

/** The style sheet's colours in the theme of this moment. */
function paletteOf(element: HTMLElement): Palette {
  const colour = (name: string) => resolvedColour(element, `var(${name})`)
  return {
    muted: colour('--muted'),
    line: colour('--line'),
    link: colour('--link'),
    fill: colour('--link-fill'),
    size: colour('--size'),
  }
}

/** The width of a vertical axis, which its longest label fits: 1,000 Mbit/s too. */
function axisWidth(_plot: uPlot, labels: string[] | null): number {
  const longest = Math.max(...(labels ?? []).map((label) => label.length), 3)
  return 8 + 6.5 * longest
}

function options(width: number, height: number, window_s: number, palette: () => Palette): uPlot.Options {
  const grid = { stroke: () => palette().line, width: 1 }
  const axis = {
    stroke: () => palette().muted,
    font: '10px system-ui, sans-serif',
    ticks: { show: false },
    gap: 4,
  }
  return {
    width,
    height,
    // Side paddings hold half of the first and the last time label.
    padding: [6, 2, 0, 2],
    cursor: { show: false },
    legend: { show: false },
    scales: {
      x: { time: false, range: [-window_s, 0] },
      y: { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.15)] },
      px: { range: (_plot, _low, high) => [0, Math.max(64, (high ?? 0) * 1.3)] },
    },
    series: [
      {},
      {
        scale: 'y',
        stroke: () => palette().link,
        fill: () => palette().fill,
        width: 1.5,
        spanGaps: true,
        points: { show: false },
      },
      {
        scale: 'px',
        stroke: () => palette().size,
        width: 1.5,
        dash: [4, 3],
        ...(STEPPED && { paths: STEPPED }),
        points: { show: false },
      },
    ],
    axes: [
      {
        ...axis,
        size: 16,
        grid: { show: false },
        splits: [-window_s, -window_s / 2, 0],
        values: (_plot, splits) => splits.map((at) => (at === 0 ? 'now' : `${`${at}`.replace('-', '−')} s`)),
      },
      { ...axis, scale: 'y', size: axisWidth, space: 22, grid },
      { ...axis, scale: 'px', side: 1, size: axisWidth, space: 22, grid: { show: false } },
    ],
  }
}

// What the camera's link carried in the window, and the picture size it led to.

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

import { linkColumns, type LinkColumns } from '../series'
import { THEME_CHANGED } from '../theme'
import type { History } from '../types'

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

  useEffect(() => {
    const element = place.current
    if (!element) return
    const plot = new uPlot(options(element, height, window_s), data(columns), element)
    chart.current = plot
    const fit = () => plot.setSize({ width: element.clientWidth, height })
    const resizes = new ResizeObserver(fit)
    resizes.observe(element)
    const repaint = () => plot.redraw(false, true)
    const scheme = window.matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', repaint)
    window.addEventListener(THEME_CHANGED, repaint)
    return () => {
      resizes.disconnect()
      scheme.removeEventListener('change', repaint)
      window.removeEventListener(THEME_CHANGED, repaint)
      plot.destroy()
      chart.current = null
    }
  }, [height, window_s])

  useEffect(() => chart.current?.setData(data(columns)))

  return <div ref={place} class="link-chart" style={{ height: `${height}px` }} role="img" aria-label={label} />
}

function data({ at_s, bandwidth_mbps, size_px }: LinkColumns): uPlot.AlignedData {
  return [at_s, bandwidth_mbps, size_px]
}

/** A size holds until the next one: drawn as steps. */
const STEPPED = uPlot.paths.stepped?.({ align: 1 })

/** A colour from the style sheet; asked for at every drawing, since the theme may have changed. */
function themed(element: HTMLElement, name: string): () => string {
  return () => {
    element.style.color = `var(${name})`
    return getComputedStyle(element).color
  }
}

function options(element: HTMLElement, height: number, window_s: number): uPlot.Options {
  const muted = themed(element, '--muted')
  const grid = { stroke: themed(element, '--line'), width: 1 }
  const axis = {
    stroke: muted,
    font: '10px system-ui, sans-serif',
    ticks: { show: false },
    gap: 4,
  }
  return {
    width: element.clientWidth,
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
        stroke: themed(element, '--link'),
        fill: themed(element, '--link-fill'),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
      },
      {
        scale: 'px',
        stroke: themed(element, '--size'),
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
        values: (_plot, splits) => splits.map((at) => (at === 0 ? 'now' : `${at}`.replace('-', '−') + ' s')),
      },
      { ...axis, scale: 'y', size: 26, space: 22, grid },
      { ...axis, scale: 'px', side: 1, size: 30, space: 22, grid: { show: false } },
    ],
  }
}

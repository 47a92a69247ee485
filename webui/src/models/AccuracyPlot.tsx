// Accuracy against latency: a mark per variant, filled where cameras use it. The table beside it says the same.

import styles from './AccuracyPlot.module.css'

import { useLayoutEffect, useRef, useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import { milliseconds, plural } from '../ui/format'
import { accuracyTicks, type Family, logScale, type Mark, type ModelList, placeLabels, shortName, type Times, timesOf, type Variant } from './families'

export interface MarksProps {
  list: ModelList
  family: Family
  executor: string
  users: ReadonlyMap<string, readonly string[]>
  /** The variant that the mouse is on, here or in the table. */
  hovered: string | null
  onHover: (variant: string | null) => void
}

const HEIGHT_PX = 340
const LEFT_PX = 34
const RIGHT_PX = 14
const TOP_PX = 12
const BOTTOM_PX = 38

interface Point {
  variant: Variant
  times: Times
  x: number
  y: number
  /** Where its 99th percentile lies. */
  end: number
  cameras: number
}

export function AccuracyPlot({ list, family, executor, users, hovered, onHover }: MarksProps) {
  const [box, width] = useWidth()
  const timed = family.variants.flatMap((variant) => {
    if (variant.accuracy_assumed) return []
    const batch = Math.min(...Object.keys(variant.profiles[executor] ?? {}).map(Number))
    const times = timesOf(list, variant, executor, batch)
    return times ? [{ variant, times }] : []
  })
  const axis = logScale(timed.flatMap(({ times }) => [times.p50, times.p99]))
  const ticks = accuracyTicks(Math.max(0, ...timed.map(({ variant }) => variant.accuracy)))
  const top = ticks[ticks.length - 1] ?? 1
  const across = (ms: number) => LEFT_PX + axis.at(ms) * (width - LEFT_PX - RIGHT_PX)
  const up = (accuracy: number) => HEIGHT_PX - BOTTOM_PX - (accuracy / top) * (HEIGHT_PX - BOTTOM_PX - TOP_PX)
  const points = timed.map(({ variant, times }): Point => ({
    variant, times, x: across(times.p50), y: up(variant.accuracy), end: across(times.p99), cameras: users.get(variant.name)?.length ?? 0,
  }))
  const kind = timed.find(({ variant }) => variant.accuracy_report)?.variant.accuracy_report?.kind ?? (family.task === 'detect' ? 'mAP' : '')
  const most = [...points].sort((a, b) => b.cameras - a.cameras)
  const labels = placeLabels(most.map((point) => markOf(point, family.name)), { x: LEFT_PX, y: 0, width: width - LEFT_PX - 2, height: HEIGHT_PX - BOTTOM_PX })
  return (
    <figure class={styles.plot} ref={box}>
      <svg role="img" width={width} height={HEIGHT_PX} viewBox={`0 0 ${width} ${HEIGHT_PX}`} aria-label={spoken(points, family)} data-testid="plot">
        {ticks.map((tick) => (
          <g key={tick}>
            <line class={styles.grid} x1={LEFT_PX} x2={width - RIGHT_PX} y1={up(tick)} y2={up(tick)} />
            <text x={LEFT_PX - 6} y={up(tick) + 4} text-anchor="end">{tick}</text>
          </g>
        ))}
        {axis.ticks.map((tick) => (
          <g key={tick}>
            <line class={styles.grid} x1={across(tick)} x2={across(tick)} y1={TOP_PX} y2={HEIGHT_PX - BOTTOM_PX} />
            <text x={across(tick)} y={HEIGHT_PX - BOTTOM_PX + 15} text-anchor="middle">{tick}</text>
          </g>
        ))}
        <text x={width - RIGHT_PX} y={HEIGHT_PX - 6} text-anchor="end">ms for one picture, P50 and up to P99{executor && ` on ${executor}`}</text>
        {points.map((point) => (
          <g
            key={point.variant.name} class={classOf(point, hovered)} data-testid="mark" data-variant={point.variant.name} data-cameras={point.cameras}
            onMouseEnter={() => onHover(point.variant.name)} onMouseLeave={() => onHover(null)}
          >
            <title>{wordsOf(point)}</title>
            <line x1={point.x} x2={Math.max(point.end, point.x)} y1={point.y} y2={point.y} />
            <line x1={point.end} x2={point.end} y1={point.y - 3.5} y2={point.y + 3.5} />
            <circle cx={point.x} cy={point.y} r={radiusOf(point)} />
            <circle class={styles.target} cx={point.x} cy={point.y} r={12} />
          </g>
        ))}
        {labels.map(({ key, text, x, y }) => (
          <text key={key} class={classes(styles.name, users.has(key) && styles.used)} x={x} y={y + 4}>{text}</text>
        ))}
      </svg>
      <figcaption>
        Accuracy{kind && ` (${kind})`} against latency
        <span class={styles.key}><span class={styles.usedKey} aria-hidden="true" /> in use</span>
        <span class={styles.key}><span class={styles.freeKey} aria-hidden="true" /> not in use</span>
      </figcaption>
    </figure>
  )
}

function markOf(point: Point, family: string): Mark {
  const { variant, cameras, x, y, end } = point
  const short = shortName(variant.name, family)
  return { key: variant.name, x, y, end, radius: radiusOf(point), text: cameras > 0 ? `${short}: ${plural(cameras, 'camera')}` : short }
}

function radiusOf({ cameras }: Point): number {
  return cameras > 0 ? Math.min(11, 5 + Math.sqrt(cameras)) : 4
}

function classOf({ variant, cameras }: Point, hovered: string | null): string {
  return classes(styles.point, cameras > 0 && styles.used, variant.dominated !== null && styles.setAside, hovered === variant.name && styles.hovered)
}

function wordsOf({ variant, times, cameras }: Point): string {
  return `${variant.name}: accuracy ${variant.accuracy.toFixed(3)}, P50 ${milliseconds(times.p50)}, P99 ${milliseconds(times.p99)}, ${plural(cameras, 'camera')}`
}

function spoken(points: readonly Point[], family: Family): string {
  const used = points.filter(({ cameras }) => cameras > 0).map(({ variant, cameras }) => `${variant.name} by ${plural(cameras, 'camera')}`)
  return `Accuracy against latency of ${plural(points.length, 'variant')} of ${family.name}; in use: ${used.join(', ') || 'none'}. The table has the figures.`
}

/** How wide the plot may be, from its first drawing on. */
function useWidth() {
  const box = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(320)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const fit = () => setWidth(Math.max(240, Math.floor(element.clientWidth)))
    fit()
    const observer = new ResizeObserver(fit)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [box, width] as const
}

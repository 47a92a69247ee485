// Zones and lines while they are drawn: from points and words to what PATCH takes. Pure.

import type { Line, Zone } from '../api/api-types'
import type { Point } from '../live/zones'

export type Kind = 'zone' | 'line'

export interface Shapes {
  zones: readonly Zone[]
  lines: readonly Line[]
}

/** What the box is sent: all zones and lines of the camera. */
export interface Change {
  zones: Zone[]
  lines: Line[]
}

/** Of a line exactly so many. */
export const POINTS_MIN: Readonly<Record<Kind, number>> = { zone: 3, line: 2 }

/** "2 of 3 or more points." */
export function pointsText(kind: Kind, points: readonly Point[]): string {
  return `${points.length} of ${POINTS_MIN[kind]}${kind === 'zone' ? ' or more' : ''} points.`
}

/** How far an arrow key moves, as a share of the picture. */
export const STEP = 0.02

export function without({ zones, lines }: Shapes, name: string): Change {
  return change({ zones: zones.filter((one) => one.name !== name), lines: lines.filter((one) => one.name !== name) })
}

/** All shapes and a new one. A time that is no number goes as it is: the box says what is wrong with it. */
export function added(shapes: Shapes, kind: Kind, words: { name: string; classes: string; dwell: string }, points: readonly Point[]): Change {
  const { zones, lines } = change(shapes)
  const classes = words.classes.split(',').map((name) => name.trim()).filter((name) => name !== '')
  const one = { name: words.name.trim(), points: points.map(([x, y]) => [rounded(x), rounded(y)] as const), classes }
  if (kind === 'line') return { zones, lines: [...lines, one] }
  const typed = words.dwell.trim().replace(',', '.')
  const min_dwell_s = typed === '' ? 0 : Number.isFinite(Number(typed)) ? Number(typed) : (typed as unknown as number)
  return { zones: [...zones, { ...one, min_dwell_s }], lines }
}

/** The points after another one: a line has two, and a third begins a new one. */
export function withPoint(kind: Kind, points: readonly Point[], point: Point): readonly Point[] {
  return kind === 'line' && points.length === 2 ? [point] : [...points, point]
}

/** Where the crosshair is after a key; null: the key does not move it. */
export function moved([x, y]: Point, key: string): Point | null {
  const steps: Record<string, Point> = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }
  const step = steps[key]
  return step ? [within(x + step[0]), within(y + step[1])] : null
}

/** A place on the screen as shares of the picture, which lies whole and in the middle of its frame. */
export function shareOf(place: { x: number; y: number }, frame: { width: number; height: number }, picture: { width: number; height: number }): Point {
  const scale = Math.min(frame.width / picture.width, frame.height / picture.height)
  const left = (frame.width - picture.width * scale) / 2
  const top = (frame.height - picture.height * scale) / 2
  return [within((place.x - left) / (picture.width * scale)), within((place.y - top) / (picture.height * scale))]
}

/** Settings alone, without counts. */
function change({ zones, lines }: Shapes): Change {
  return {
    zones: zones.map(({ name, points, classes, min_dwell_s }) => ({ name, points, classes: classes ?? [], min_dwell_s: min_dwell_s ?? 0 })),
    lines: lines.map(({ name, points, classes }) => ({ name, points, classes: classes ?? [] })),
  }
}

function within(share: number): number {
  return Math.min(1, Math.max(0, share))
}

function rounded(share: number): number {
  return Math.round(share * 1e4) / 1e4
}

// What zones and lines say: from the box's counts to words, from shares of the picture to its pixels. Pure.

import type { CameraTracking } from '../api/api-types'

export type Tracking = CameraTracking
export type Point = readonly [number, number]
type Counts = Readonly<Record<string, number>>

/** Points as SVG's `points`, in a picture of this size. */
export function svgPoints(points: readonly Point[], width: number, height: number): string {
  return points.map(([x, y]) => `${round(x * width)},${round(y * height)}`).join(' ')
}

/** "2 car, 1 person"; of nothing: "0". */
export function inWords(counts: Counts): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([label, count]) => `${count} ${label}`).join(', ') || '0'
}

export function crossingsInWords(counted: { in: Counts; out: Counts }): string {
  return `${total(counted.in)} in, ${total(counted.out)} out`
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10
}

// Model families as GET /v1/models tells of them, who uses what, and where marks go on the plot. Pure.

import type { Answers, Family, Variant } from '../api/api-types'
import type { Camera } from '../api/types'
import { BY_NAME } from '../ui/names'

export type { Family, Variant }
export type ModelList = Answers['GET /v1/models']

/** What a batch takes, in ms: half of them, nine of ten, all but one in a hundred. */
export interface Times {
  p50: number
  p90: number
  p99: number
}

/** A variant's times in batches of one size; null: never measured there. */
export function timesOf(list: ModelList, variant: Variant, executor: string, batch: number): Times | null {
  const row = variant.profiles[executor]?.[batch]
  if (!row) return null
  const at = (share: number) => row[list.quantiles.indexOf(share)] ?? Number.NaN
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}

/** Batch sizes that a variant was measured in, rising. */
export function batchesOf(variant: Variant, executor: string): number[] {
  return Object.keys(variant.profiles[executor] ?? {}).map(Number).sort((a, b) => a - b)
}

/** Executors that any variant was measured on. */
export function executorsOf(family: Family): string[] {
  return [...new Set(family.variants.flatMap(({ profiles }) => Object.keys(profiles)))].sort(BY_NAME.compare)
}

/** Names of the connected cameras that are advised to send for each variant. */
export function usersOf(cameras: readonly Camera[]): Map<string, string[]> {
  const users = new Map<string, string[]>()
  for (const { id, connected, advice } of cameras)
    if (connected && advice) users.set(advice.variant, [...(users.get(advice.variant) ?? []), id].sort(BY_NAME.compare))
  return users
}

/** A variant's name without its family's, where it begins with that. */
export function shortName(variant: string, family: string): string {
  return variant.startsWith(`${family}-`) ? variant.slice(family.length + 1) : variant
}

/** A logarithmic axis: where a value lies on it, 0 to 1, and round numbers to write at it. */
export interface LogScale {
  low: number
  high: number
  ticks: readonly number[]
  at: (value: number) => number
}

/** An axis around all values, a little wider than they are. */
export function logScale(values: readonly number[]): LogScale {
  const good = values.filter((value) => value > 0)
  const low = Math.min(...good, Number.POSITIVE_INFINITY) / 1.15
  const high = Math.max(...good, 0) * 1.15
  if (!(low < high)) return { low: 1, high: 10, ticks: [1, 2, 5, 10], at: () => 0.5 }
  const span = Math.log(high / low)
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
    for (const digit of [1, 2, 5]) {
      const tick = Number(`${digit}e${power}`)
      if (tick >= low && tick <= high) ticks.push(tick)
    }
  return { low, high, ticks, at: (value) => Math.log(Math.max(value, low) / low) / span }
}

/** Round numbers from 0 to the first one above a value in [0, 1]: the accuracy axis. */
export function accuracyTicks(most: number): number[] {
  const step = most > 0.5 ? 0.2 : most > 0.2 ? 0.1 : 0.05
  const steps = Math.max(1, Math.ceil(Math.min(1, most) / step - 1e-9))
  return Array.from({ length: steps + 1 }, (_, number) => Math.round(number * step * 100) / 100)
}

export interface Rect {
  x: number
  y: number
  width: number
  height: number
}

export interface Mark {
  key: string
  x: number
  y: number
  /** Half the side of what is drawn there. */
  radius: number
  /** Where the line to its right ends. */
  end: number
  text: string
}

export interface Label {
  key: string
  text: string
  /** The middle of its left end. */
  x: number
  y: number
}

/** How wide a character of a label is, at most on average. */
const CHARACTER_PX = 7
const LINE_PX = 14
const AWAY_PX = 4
const LINE_HALF_PX = 3

/**
 * Find a free place beside each mark for its text; earlier marks choose first, and a text that finds none is left out.
 *
 * Tries places around each mark, against all marks, their lines, the texts before it and the border: O(n²).
 */
export function placeLabels(marks: readonly Mark[], within: Rect): Label[] {
  const taken: Rect[] = marks.flatMap(({ x, y, radius, end }) => [
    { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius },
    { x, y: y - LINE_HALF_PX, width: Math.max(0, end - x), height: 2 * LINE_HALF_PX },
  ])
  const labels: Label[] = []
  for (const { key, x, y, radius, end, text } of marks) {
    const width = text.length * CHARACTER_PX
    const free = [
      { x: x - radius - AWAY_PX - width, y: y - radius - AWAY_PX - LINE_PX / 2 },
      { x: x - width / 2, y: y - radius - AWAY_PX - LINE_PX },
      { x: x - radius - AWAY_PX - width, y: y - LINE_PX / 2 },
      { x: x + radius, y: y + radius + AWAY_PX / 2 },
      { x: x - width / 2, y: y + radius + AWAY_PX },
      { x: end + AWAY_PX, y: y - LINE_PX / 2 },
    ]
      .map((corner) => ({ ...corner, width, height: LINE_PX }))
      .find((place) => inside(place, within) && !taken.some((other) => overlap(place, other)))
    if (!free) continue
    taken.push(free)
    labels.push({ key, text, x: free.x, y: free.y + LINE_PX / 2 })
  }
  return labels
}

function inside(inner: Rect, outer: Rect): boolean {
  return inner.x >= outer.x && inner.y >= outer.y
    && inner.x + inner.width <= outer.x + outer.width && inner.y + inner.height <= outer.y + outer.height
}

function overlap(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

// Where batches, drops and queue lengths lie in a view of some width. Pure.

import { endOf, startOf, verdictOf } from './timelineStore'
import type { Batch, DroppedRequest, QueueEntry } from './timeline'
import { xOf, type View } from './view'

export interface BatchBox {
  x_px: number
  width_px: number
  /** The batch; of several too narrow to tell apart, the last. */
  batch: Batch
  /** How many batches this box stands for. */
  count: number
  /** Whether one of them has requests that were answered late, or not at all. */
  troubled: boolean
}

/** Narrower boxes are drawn together with their neighbours. */
const NARROW_PX = 2
const NEAR_PX = 1

/**
 * Place an executor's batches, which are in order and never overlap. O(log n + visible): of a minute of a fast
 * accelerator most lies outside, and what is inside becomes at most a box per two pixels.
 */
export function boxesOf(batches: readonly Batch[], view: View, width_px: number): BatchBox[] {
  const boxes: BatchBox[] = []
  const start_ms = view.end_ms - view.span_ms
  for (let at = firstEndingAfter(batches, start_ms); at < batches.length; at += 1) {
    const batch = batches[at] as Batch
    if (startOf(batch) > view.end_ms) break
    add(boxes, boxOf(batch, view, width_px))
  }
  return boxes
}

/** Place one batch; one that runs reaches to the right edge. */
export function boxOf(batch: Batch, view: View, width_px: number): BatchBox {
  const x_px = xOf(startOf(batch), view, width_px)
  const to_px = xOf(endOf(batch) ?? view.end_ms, view, width_px)
  const verdict = verdictOf(batch)
  return {
    x_px,
    width_px: Math.max(0, to_px - x_px),
    batch,
    count: 1,
    troubled: verdict === 'late' || verdict === 'failed',
  }
}

function add(boxes: BatchBox[], next: BatchBox): void {
  const last = boxes.at(-1)
  const alike = last && last.batch.variant === next.batch.variant && last.batch.kind === next.batch.kind
  const narrow = last && (next.width_px < NARROW_PX || last.width_px < NARROW_PX)
  if (last && alike && narrow && next.x_px - last.x_px - last.width_px < NEAR_PX) {
    last.width_px = next.x_px + next.width_px - last.x_px
    last.batch = next.batch
    last.count += 1
    last.troubled ||= next.troubled
  } else {
    boxes.push(next)
  }
}

function firstEndingAfter(batches: readonly Batch[], at_ms: number): number {
  let low = 0
  let high = batches.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((endOf(batches[middle] as Batch) ?? Infinity) < at_ms) low = middle + 1
    else high = middle
  }
  return low
}

/** The box at this place, or the nearest within reach; null: none. */
export function boxAt(boxes: readonly BatchBox[], x_px: number, reach_px: number): BatchBox | null {
  let nearest: BatchBox | null = null
  let distance_px = reach_px
  for (const box of boxes) {
    const off_px = Math.max(box.x_px - x_px, x_px - box.x_px - box.width_px, 0)
    if (off_px <= distance_px) {
      nearest = box
      distance_px = off_px
      if (off_px === 0) break
    }
  }
  return nearest
}

export interface DropMark {
  x_px: number
  drops: DroppedRequest[]
}

/** Place drops; those that would cover each other are one mark. */
export function marksOf(drops: readonly DroppedRequest[], view: View, width_px: number, room_px: number): DropMark[] {
  const marks: DropMark[] = []
  for (const drop of drops) {
    if (drop.at_ms < view.end_ms - view.span_ms || drop.at_ms > view.end_ms) continue
    const x_px = xOf(drop.at_ms, view, width_px)
    const last = marks.at(-1)
    if (last && x_px - last.x_px < room_px) last.drops.push(drop)
    else marks.push({ x_px, drops: [drop] })
  }
  return marks
}

export interface QueueLine {
  variant: string
  /** Steps: from each x on, the queue was this long at most. */
  steps: Array<{ x_px: number; length: number }>
}

/** One line per variant that somebody waits for within the view, and the longest queue among them. */
export function queueLines(
  queues: readonly QueueEntry[],
  view: View,
  width_px: number,
): { lines: QueueLine[]; longest: number } {
  const start_ms = view.end_ms - view.span_ms
  let first = queues.length
  while (first > 0 && (queues[first - 1] as QueueEntry)[0] > start_ms) first -= 1
  const seen = queues.slice(Math.max(0, first - 1)).filter(([at_ms]) => at_ms <= view.end_ms)
  const variants = new Set(seen.flatMap(([, lengths]) => Object.keys(lengths)))
  let longest = 0
  const lines = [...variants].map((variant) => {
    const steps: QueueLine['steps'] = []
    for (const [at_ms, lengths] of seen) {
      const length = lengths[variant] ?? 0
      longest = Math.max(longest, length)
      if (length === (steps.at(-1)?.length ?? 0)) continue
      steps.push({ x_px: xOf(at_ms, view, width_px), length })
    }
    return { variant, steps }
  })
  return { lines: lines.filter(({ steps }) => steps.length > 0), longest }
}

/** The batch before or after one, in the order of their start; the last or the first when that one is gone. */
export function neighbour(batches: readonly Batch[], of: number | null, step: 1 | -1): Batch | null {
  const at = batches.findIndex(({ batch }) => batch === of)
  if (at === -1) return batches.at(step === 1 ? 0 : -1) ?? null
  return batches[Math.min(batches.length - 1, Math.max(0, at + step))] ?? null
}

// One percentile of end-to-end latency as a bar against the deadline. Pure.

import { isKnown, milliseconds } from '../ui/format'
import type { Camera, LatencySplit } from '../api/types'

export const STAGES = ['network', 'queue', 'inference', 'return'] as const
export type Stage = (typeof STAGES)[number]

/** A stage's name for people: what a camera that the box fetches takes until its picture is there is more than a network. */
export function stageWord(stage: Stage, fetched: boolean): string {
  return fetched && stage === 'network' ? 'fetching' : stage
}

export interface Segment {
  stage: Stage
  /** Measured milliseconds of this stage. */
  ms: number
  /** Width of the segment as a percentage of the whole scale. */
  width: number
}

/** The scale of both bars in ms: the deadline at four fifths, more when a bar is longer than that. */
export function scaleMs(slo_ms: number, totals: ReadonlyArray<number | null | undefined>): number {
  const longest = Math.max(0, ...totals.filter(isKnown))
  return Math.max(slo_ms * 1.25, longest * 1.05)
}

/** What answers after the deadline are still worth; empty when nothing. */
export function laterNote(later: Camera['later']): string {
  return later.map(([ms, worth]) => `, worth ${worth} until ${milliseconds(ms)}`).join('')
}

/**
 * The segments of one bar. Percentiles of parts need not add up to the percentile of the whole, so the
 * segments share the measured total in proportion: where the bar ends is what counts against the deadline.
 */
export function segments(split: Readonly<Record<keyof LatencySplit, number | null>>, scale_ms: number): Segment[] {
  const parts = STAGES.map((stage) => ({ stage, ms: split[stage] ?? 0 }))
  const sum = parts.reduce((total, part) => total + part.ms, 0)
  if (sum <= 0 || scale_ms <= 0) return []
  const total = isKnown(split.total) ? split.total : sum
  return parts.map(({ stage, ms }) => ({ stage, ms, width: (ms / sum) * (total / scale_ms) * 100 }))
}

// How long applications' requests take against what the profiles say, as bands on one scale. Pure.

import type { AppLatency, Percentiles } from '../api/types'
import { BY_NAME } from '../ui/names'

/** From the median to the 99th percentile, as percentages of the scale. */
export interface Band {
  left: number
  width: number
}

/** A band is never thinner than this: one that has no spread must be seen, too. */
const THINNEST = 0.8

/** Those with the most recent requests, each in a place that does not change with its count. */
export function mostUsed(applications: readonly AppLatency[], amount: number): AppLatency[] {
  const kept = new Set([...applications].sort((a, b) => b.count - a.count).slice(0, amount))
  return applications
    .filter((times) => kept.has(times))
    .sort((a, b) => BY_NAME.compare(a.app, b.app) || BY_NAME.compare(a.variant, b.variant) || BY_NAME.compare(a.executor, b.executor))
}

/** What is shown beside the profile: what was measured, or else what is expected. */
export function shownMs({ measured_ms, expected_ms }: AppLatency): Percentiles {
  return measured_ms ?? expected_ms
}

/** The scale of all bands in ms: the longest ends just before it. */
export function scaleMs(applications: readonly AppLatency[]): number {
  return Math.max(0, ...applications.flatMap((times) => [shownMs(times).p99, times.profile_ms.p99])) * 1.04
}

export function band({ p50, p99 }: Percentiles, scale_ms: number): Band {
  if (scale_ms <= 0) return { left: 0, width: THINNEST }
  const width = Math.max(THINNEST, ((p99 - p50) / scale_ms) * 100)
  return { left: Math.min((p50 / scale_ms) * 100, 100 - width), width }
}

/** What to say of the measured times: the profile is believed while they are near it. */
export function verdict({ measured_ms, profile_ms }: AppLatency): 'as profiled' | 'slower' | 'faster' | 'remembered' {
  if (measured_ms === null) return 'remembered'
  const ratio = measured_ms.p50 / profile_ms.p50
  if (ratio > 1.2) return 'slower'
  return ratio < 1 / 1.2 ? 'faster' : 'as profiled'
}

// What GET /v1/cameras/{id}/history answers, as docs/http-api.md says.

import type { LatencySplit } from '../types'

/** One value per step; null where nothing was kept. */
export type Column = ReadonlyArray<number | null>

/** A column for each part of a frame's way. */
export type LatencyColumns = Readonly<Record<keyof LatencySplit, Column>>

export interface BandwidthColumns {
  mean: Column
  min: Column
  max: Column
}

export interface History {
  camera: string | null
  from_ms: number
  to_ms: number
  segments: ReadonlyArray<{ level: 'second' | 'minute' | 'hour'; from_ms: number; step_ms: number; points: number }>
  at_ms: readonly number[]
  covered_ms: Column
  captured: Column
  on_time: Column
  late: Column
  dropped: Readonly<Record<string, Column>>
  /** Answered frames by variant. */
  variants: Readonly<Record<string, Column>>
  fps: Column
  latency_ms: { p50: LatencyColumns; p99: LatencyColumns }
  received_bps: Column
  bandwidth_bps: { measured: BandwidthColumns; estimated: BandwidthColumns }
}

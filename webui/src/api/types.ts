// What the box sends to the page, as docs/reference/http-api.md says. Values not known yet are null.

import type { BoxState as BoxSection, CameraState, Detection, LatencyParts, ModelMemory, State } from './api-types'

export type { Advice, AppLatency, Counts, Destination, Detection, Executor, Group, Link } from './api-types'

/** A share of a whole, by name: `{"queue": 3}`. */
export type ByReason = Readonly<Record<string, number>>

/** Milliseconds of one percentile, per stage of a frame's way; each is that stage's own percentile. */
export type LatencySplit = LatencyParts

/** A history: [seconds before now (negative), value], oldest first. */
export type History = ReadonlyArray<readonly [number, number]>

export type Camera = CameraState
export type Memory = ModelMemory
export type BoxEvent = BoxSection['events'][number]
export type Box = BoxSection
export type BoxState = State

export interface Percentiles {
  p50: number
  p99: number
}

/** What the page may ask of the box; without `max_hz`, the box's own rate. */
export interface Watch {
  type: 'watch'
  max_hz?: number
  /** Only these cameras' frames; without it, those of all. */
  cameras?: readonly string[]
  /** Also the timeline, from a minute ago on. */
  timeline?: boolean
}

/** The JSON header of a binary message. */
export interface FrameHeader {
  camera: string
  frame: number
  width_px: number
  height_px: number
  variant: string | null
  outcome: string
  total_ms: number | null
  detections: readonly Detection[]
  /** Stages of the pipeline that some object was not answered by in time. */
  missing?: readonly string[]
  /** Where the first stage ran, if that was not the box: then there is no picture. */
  placement?: string
  cascade?: string
}

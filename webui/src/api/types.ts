// What the box sends to the page, as docs/reference/http-api.md says. Values not known yet are null.

import type { BoxState as BoxSection, CameraState, LatencyParts, ModelMemory, State } from './api-types'

export type {
  Advice, AppLatency, BoxEvent, Counts, Destination, Detection, Executor, Group, Link, LiveFrameHeader, Percentiles,
} from './api-types'

/** A share of a whole, by name: `{"queue": 3}`. */
export type ByReason = Readonly<Record<string, number>>

/** Milliseconds of one percentile, per stage of a frame's way; each is that stage's own percentile. */
export type LatencySplit = LatencyParts

/** A history: [seconds before now (negative), value], oldest first. */
export type History = ReadonlyArray<readonly [number, number]>

export type Camera = CameraState
export type Source = State['sources'][number]
export type Memory = ModelMemory
export type Box = BoxSection
export type BoxState = State

/** What the page may ask of the box; without `max_hz`, the box's own rate. */
export interface Watch {
  type: 'watch'
  max_hz?: number
  /** Only these cameras' frames; without it, those of all. */
  cameras?: readonly string[]
  /** Also the timeline, from a minute ago on. */
  timeline?: boolean
}

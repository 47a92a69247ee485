// What GET /v1/cameras/{id}/history answers, as docs/reference/http-api.md says.

import type { History, HistoryBandwidth, HistoryLatency } from '../api/api-types'

export type { History }

/** One value per step; null where nothing was kept. */
export type Column = ReadonlyArray<number | null>

/** A column for each part of a frame's way. */
export type LatencyColumns = HistoryLatency
export type BandwidthColumns = HistoryBandwidth

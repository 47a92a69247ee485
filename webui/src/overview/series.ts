// The last minute of a camera's link, and what size it led to, as columns for the chart. Pure.

import type { History } from '../api/types'

export interface LinkColumns {
  /** Seconds before now, rising to 0. */
  at_s: number[]
  /** Mbit/s, null where it was not measured. */
  bandwidth_mbps: Array<number | null>
  /** The advised picture width in px that was in force, null before the first. */
  size_px: Array<number | null>
}

/** Join both histories on one time axis over the window that ends now. */
export function linkColumns(bandwidth: History, sizes: History, window_s: number): LinkColumns {
  const measured = new Map(bandwidth.map(([at, bps]) => [at, bps / 1e6]))
  const changes = [...sizes].sort(([a], [b]) => a - b)
  const at_s = [...new Set([-window_s, ...measured.keys(), ...changes.map(([at]) => at), 0])]
    .filter((at) => at >= -window_s && at <= 0)
    .sort((a, b) => a - b)
  let next = 0
  let inForce: number | null = null
  const size_px = at_s.map((at) => {
    for (let change = changes[next]; change && change[0] <= at; change = changes[++next]) inForce = change[1]
    return inForce
  })
  return { at_s, bandwidth_mbps: at_s.map((at) => measured.get(at) ?? null), size_px }
}

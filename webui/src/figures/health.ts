// How a camera is doing, in one word. Pure.

import type { Camera } from '../api/types'

export type Health = 'good' | 'strained' | 'failing' | 'waiting' | 'gone'

/** What the share of frames answered on time over the window must be at least. */
export const GOOD_SHARE = 0.99
export const STRAINED_SHARE = 0.95

export function cameraHealth(camera: Pick<Camera, 'connected' | 'on_time_share'>): Health {
  if (!camera.connected) return 'gone'
  if (camera.on_time_share === null) return 'waiting'
  if (camera.on_time_share >= GOOD_SHARE) return 'good'
  return camera.on_time_share >= STRAINED_SHARE ? 'strained' : 'failing'
}

/** The word shown beside the colour, for whoever does not see the colour. */
export const HEALTH_WORD: Readonly<Record<Health, string>> = {
  good: 'healthy',
  strained: 'strained',
  failing: 'failing',
  waiting: 'no frames',
  gone: 'disconnected',
}

/** "3 healthy, 1 strained", the ones that need attention first. */
export function healthSummary(cameras: readonly Camera[]): Array<{ health: Health; amount: number }> {
  const order: Health[] = ['failing', 'strained', 'waiting', 'good', 'gone']
  return order
    .map((health) => ({ health, amount: cameras.filter((camera) => cameraHealth(camera) === health).length }))
    .filter(({ amount }) => amount > 0)
}

// What the boxes of a fleet say of themselves, for people. Pure.

import type { Answers } from '../api/api-types'
import { percent } from '../ui/format'
import { BY_NAME } from '../ui/names'

export type Fleet = Answers['GET /v1/fleet']
export type FleetBox = Fleet['boxes'][number]
export type Standing = 'serving' | 'stopping' | 'not ready'

/** Its name without the address, which a fleet adds to tell boxes apart. */
export function nameOf({ box, address }: Pick<FleetBox, 'box' | 'address'>): string {
  const suffix = ` at ${address}`
  return box.endsWith(suffix) ? box.slice(0, -suffix.length) : box
}

/** Where its page is; null: its address is none that a browser opens. */
export function pageOf({ address }: Pick<FleetBox, 'address'>): string | null {
  return /^https?:\/\//.test(address) ? `${address}/` : null
}

export function standingOf({ ready, draining }: Pick<FleetBox, 'ready' | 'draining'>): Standing {
  if (!ready) return 'not ready'
  return draining ? 'stopping' : 'serving'
}

/** Its load in words: a load of 1 is all that it can do. */
export function loadText({ ready, load }: Pick<FleetBox, 'ready' | 'load'>): string {
  if (!ready) return 'load not known yet'
  return load > 1 ? `${percent(load, 0)} loaded: too much for all` : `${percent(load, 0)} loaded`
}

/** In the order of their names, on every box's page the same. */
export function inOrder(boxes: readonly FleetBox[]): FleetBox[] {
  return [...boxes].sort((a, b) => BY_NAME.compare(a.box, b.box))
}

export interface Sums {
  cameras: number
  cameras_max: number
  /** Means and maxima are of the boxes that serve; null: none does. */
  load_mean: number | null
  load_max: number | null
  /** Each version that runs, in order. */
  versions: readonly string[]
}

export function sumsOf(boxes: readonly FleetBox[]): Sums {
  const loads = boxes.filter((box) => standingOf(box) === 'serving').map(({ load }) => load)
  const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0)
  return {
    cameras: sum(boxes.map(({ cameras }) => cameras)),
    cameras_max: sum(boxes.map(({ cameras_max }) => cameras_max)),
    load_mean: loads.length > 0 ? sum(loads) / loads.length : null,
    load_max: loads.length > 0 ? Math.max(...loads) : null,
    versions: [...new Set(boxes.map(({ version }) => version))].sort(BY_NAME.compare),
  }
}

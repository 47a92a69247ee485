// How it goes with the places that events are sent to. Pure.

import { count } from '../ui/format'
import type { Destination } from '../api/types'

export type Standing = 'up' | 'down' | 'untried'

/** The word shown beside the colour. */
export const STANDING_WORD: Readonly<Record<Standing, string>> = { up: 'up', down: 'down', untried: 'not tried yet' }

export function standing({ connected }: Pick<Destination, 'connected'>): Standing {
  if (connected === null) return 'untried'
  return connected ? 'up' : 'down'
}

/** How many of them take events; what was not tried yet is counted with them. */
export function working(destinations: readonly Destination[]): number {
  return destinations.filter((each) => standing(each) !== 'down').length
}

export function lost({ dropped }: Pick<Destination, 'dropped'>): number {
  return Object.values(dropped).reduce((sum, amount) => sum + amount, 0)
}

/** "3 overflow, 1 expired": why events were lost; empty if none was. */
export function lostWhy({ dropped }: Pick<Destination, 'dropped'>): string {
  const reasons = Object.entries(dropped).filter(([, amount]) => amount > 0)
  return reasons.map(([reason, amount]) => `${count(amount)} ${reason}`).join(', ')
}

import { expect, test } from 'vitest'

import { lost, lostWhy, standing, working } from '../src/settings/destinations'
import type { Destination } from '../src/api/types'

const broker: Destination = { kind: 'mqtt', name: 'broker', connected: true, queued: 2, sent: 7, dropped: {}, last_error: null }

test('a destination is up, down or was never tried', () => {
  expect([true, false, null].map((connected) => standing({ connected }))).toEqual(['up', 'down', 'untried'])
})

test('what was not tried yet is not called broken', () => {
  expect(working([broker, { ...broker, connected: null }, { ...broker, connected: false }])).toBe(2)
})

test('what was lost is told with its reasons', () => {
  expect([lost(broker), lostWhy(broker)]).toEqual([0, ''])
  const poor = { dropped: { overflow: 3000, refused: 0, expired: 1 } }
  expect([lost(poor), lostWhy(poor)]).toEqual([3001, '3,000 overflow, 1 expired'])
})

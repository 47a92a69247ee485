import { expect, test } from 'vitest'

import type { Limit, ResourcePrice } from '../src/api/api-types'
import { priceText,  worth } from '../src/figures/limits'

const LIMIT: Limit = { resource: 'uplink', missing: 0.7, unit: 'Mbit/s', gain: 0.9132, price: 1.3046, of: 'gate' }

test('a constraint is told by what lifting it would bring', () => {
  expect(worth(LIMIT)).toBe('0.7 Mbit/s more would bring 0.91 accuracy × frames/s: 1.3 for each Mbit/s')
})

test('large and small figures have two digits that count', () => {
  const limit: Limit = { ...LIMIT, resource: 'waiting', missing: 1234, unit: 'ms', gain: 0.00123, price: 0.00001 }
  expect(worth(limit)).toBe('1,234 ms more would bring 0.0012 accuracy × frames/s: 0.00001 for each ms')
})

test('the price of time names the executors', () => {
  const price: ResourcePrice = { resource: 'executors', of: ['gpu/0', 'gpu/1'], price: 0.0314, unit: '% of time', cameras: 1 }
  expect(priceText(price)).toBe(
    'One camera would have more if gpu/0, gpu/1 had more time: 1 % of time would bring up to 0.031 accuracy × frames/s',
  )
  const many = { ...price, of: ['a', 'b', 'c', 'd'], cameras: 3 }
  expect(priceText(many)).toContain('3 cameras would have more if 4 executors had more time')
  const uplink: ResourcePrice = { resource: 'uplink', of: ['yard'], price: 0.5, unit: 'Mbit/s', cameras: 2 }
  expect(priceText(uplink)).toContain('if the uplink of yard carried more: 1 Mbit/s would bring')
})

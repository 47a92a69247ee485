import { expect, test } from 'vitest'

import { hashOf, routeOf } from '../src/app/route'

test('an address leads to the page it was written for', () => {
  for (const camera of ['gate-2', 'a/b', 'Hof #1 %', 'Straße'])
    for (const route of [{ page: 'camera', camera }, { page: 'camera', camera, range: '7d' }, { page: 'camera', camera, range: '7d', setting: 'slo_ms' }] as const) expect(routeOf(hashOf(route))).toEqual(route)
  for (const page of ['overview', 'boxes', 'scheduler', 'models', 'add', 'settings'] as const) expect(routeOf(hashOf({ page }))).toEqual({ page })
})

test('what names no page is the overview', () => {
  for (const hash of ['', '#', '#/', '#/nowhere', '#/cameras', '#/cameras/'])
    expect(routeOf(hash)).toEqual({ page: 'overview' })
  expect(routeOf('#/cameras/%')).toEqual({ page: 'camera', camera: '%' })
})

import { describe, expect, test } from 'vitest'

import { reconnectDelayMs, shouldReload } from '../src/api/reconnect'
import { webSocketAddress } from '../src/api/webSocketAddress'

test('the delay doubles up to five seconds and never grows past it', () => {
  const delays = [0, 1, 2, 3, 4, 5, 500].map((attempt) => reconnectDelayMs(attempt, 0))
  expect(delays).toEqual([500, 1000, 2000, 4000, 5000, 5000, 5000])
})

test('chance takes off up to half', () => {
  expect(reconnectDelayMs(2, 0.5)).toBe(1500)
  expect(reconnectDelayMs(2, 0.999999)).toBe(1000)
})

describe('an upgraded box', () => {
  test('makes the page load again', () => {
    expect(shouldReload('0.1.0', '0.2.0', null)).toBe(true)
    expect(shouldReload('0.1.0', '0.3.0', '0.2.0')).toBe(true)
  })

  test('does so once', () => {
    expect(shouldReload('0.1.0', '0.2.0', '0.2.0')).toBe(false)
    expect(shouldReload('0.2.0', '0.2.0', null)).toBe(false)
  })
})

test('the socket lies beside the page', () => {
  expect(webSocketAddress('http://box:8787/', 'v1/ui')).toBe('ws://box:8787/v1/ui')
  expect(webSocketAddress('https://site.example/boxes/7/?a=1#b', 'v1/ui')).toBe('wss://site.example/boxes/7/v1/ui')
})

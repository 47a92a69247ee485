import { expect, test } from 'vitest'

import { webSocketAddress } from '../src/api/webSocketAddress'
import { frameMessage, parseFromBox, to_ns } from '../src/browser-camera/wire'

test('a frame starts with the header that docs/reference/protocol.md describes', () => {
  const jpeg = new Uint8Array([0xff, 0xd8, 0xff, 0xd9]).buffer
  const captured_ns = 8_000_000_000_000_001 // after 93 days
  const message = frameMessage({ frame: 7, captured_ns, sent_ns: captured_ns + 5, width_px: 1280, height_px: 720, capturedTotal: 9 }, jpeg)
  const view = new DataView(message.buffer)
  expect(message.byteLength).toBe(36)
  expect([view.getUint8(0), view.getUint8(1), view.getUint16(2, true), view.getUint32(4, true)]).toEqual([70, 1, 32, 7])
  expect(view.getBigUint64(8, true)).toBe(8_000_000_000_000_001n)
  expect(view.getBigUint64(16, true)).toBe(8_000_000_000_000_006n)
  expect([view.getUint16(24, true), view.getUint16(26, true), view.getUint32(28, true)]).toEqual([1280, 720, 9])
  expect([...message.subarray(32)]).toEqual([0xff, 0xd8, 0xff, 0xd9])
})

test('what is not understood is told from what is', () => {
  expect(parseFromBox('{"type":"ping","id":3,"box_ns":1}')).toMatchObject({ type: 'ping', id: 3 })
  for (const text of ['', '[]', 'null', '{"type":"toString"}', '{"type":"ping"}', '{"type":"ack","frame":1,"accepted":true,"advice":null}'])
    expect(parseFromBox(text)).toBeNull()
})

test('the stream lies beside the page, under any path and over TLS', () => {
  expect(webSocketAddress('http://box:8787/camera?name=gate#x', 'v1/stream')).toBe('ws://box:8787/v1/stream')
  expect(webSocketAddress('https://example.org/box/camera', 'v1/stream')).toBe('wss://example.org/box/v1/stream')
})

test('an instant of the browser is whole nanoseconds', () => {
  expect(to_ns(1234.567891)).toBe(1_234_567_891)
})

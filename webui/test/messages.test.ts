import { describe, expect, test } from 'vitest'

import { parseFrame, parseState } from '../src/messages'

const HEADER = { camera: 'gate-2', frame: 17, width_px: 1280, height_px: 720, outcome: 'on_time', detections: [] }

function message(header: string, jpeg: number[], lengthOffset = 0): ArrayBuffer {
  const text = new TextEncoder().encode(header)
  const bytes = new Uint8Array(4 + text.length + jpeg.length)
  new DataView(bytes.buffer).setUint32(0, text.length + lengthOffset, true)
  bytes.set(text, 4)
  bytes.set(jpeg, 4 + text.length)
  return bytes.buffer
}

describe('a frame', () => {
  test('is a little-endian length, the header and the JPEG', () => {
    const frame = parseFrame(message(JSON.stringify({ ...HEADER, camera: 'tür' }), [0xff, 0xd8, 0xff]))
    expect(frame?.header).toEqual({ ...HEADER, camera: 'tür' })
    expect([...(frame?.jpeg ?? [])]).toEqual([0xff, 0xd8, 0xff])
  })

  test.each([
    ['too short for a length', new Uint8Array([1, 0]).buffer],
    ['a header longer than the message', message(JSON.stringify(HEADER), [1], 99)],
    ['no picture', message(JSON.stringify(HEADER), [])],
    ['a header that is no JSON', message('{', [1, 2])],
    ['a picture of no size', message(JSON.stringify({ ...HEADER, width_px: 0 }), [1, 2])],
    ['no camera', message(JSON.stringify({ ...HEADER, camera: undefined }), [1, 2])],
  ])('with %s is ignored', (_what, bytes) => {
    expect(parseFrame(bytes)).toBeNull()
  })
})

describe('a state', () => {
  test('is a JSON object of that type with a box and cameras', () => {
    expect(parseState('{"type":"state","now_ms":1,"box":{},"cameras":[]}')?.now_ms).toBe(1)
  })

  test.each(['', 'null', '[]', '{"type":"other"}', '{"type":"state"}', '{"type":"state","box":{},"cameras":3}'])(
    'is not %s',
    (text) => {
      expect(parseState(text)).toBeNull()
    },
  )
})

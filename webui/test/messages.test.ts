import { describe, expect, test } from 'vitest'

import { parseFrame, parseMessage } from '../src/api/messages'
import { documentedUpdate, documentedState } from './documented'

const HEADER = { camera: 'gate-2', frame: 17, width_px: 1280, height_px: 720, variant: 'street-256', outcome: 'on_time', total_ms: 33, detections: [] }

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
    ['detections that are none', message(JSON.stringify({ ...HEADER, detections: [7] }), [1, 2])],
    ['no camera', message(JSON.stringify({ ...HEADER, camera: undefined }), [1, 2])],
  ])('with %s is ignored', (_what, bytes) => {
    expect(parseFrame(bytes)).toBeNull()
  })
})

describe('a text message', () => {
  test('is a state with a box and cameras', () => {
    expect(parseMessage(JSON.stringify(documentedState()))).toMatchObject({ kind: 'state', state: { cameras: [{ id: 'gate-2' }] } })
  })

  test('is read whatever the order of its fields, and may have more of them', () => {
    const { type, ...rest } = documentedUpdate()
    expect(parseMessage(JSON.stringify({ ...rest, further: 1, type }))).toMatchObject({ kind: 'timeline' })
  })

  test.each(['', 'null', '[]', '{"type":"other"}', '{"type":"timeline"'])('is not %s', (text) => {
    expect(parseMessage(text)).toBeNull()
  })

  test('that is not as described says where, and which version the box has', () => {
    const state = documentedState()
    const camera = { ...state.cameras[0], fps: 'fast' }
    expect(parseMessage(JSON.stringify({ ...state, cameras: [camera] }))).toEqual({
      kind: 'unreadable', why: 'state: cameras[0].fps must be a number', version: '0.1.0',
    })
    expect(parseMessage('{"type":"state"}')).toEqual({ kind: 'unreadable', why: 'state: now_ms must be a number', version: null })
    expect(parseMessage('{"type":"timeline"}')).toMatchObject({ kind: 'unreadable', why: 'timeline: begins must be a boolean' })
  })
})

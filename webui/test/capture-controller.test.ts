// What may happen between Start and the first picture.

import { beforeEach, expect, test, vi } from 'vitest'

import { CaptureController } from '../src/browser-camera/captureController'
import type { Overlay } from '../src/browser-camera/overlay'
import type { Chosen } from '../src/browser-camera/settings'

const CHOSEN = { name: 'gate', device: 'user', rate_hz: 5 } as Chosen

let page: { hidden: boolean; baseURI: string; addEventListener: typeof listen; removeEventListener: () => void }
let heard: Record<string, (event: unknown) => void>
let ended: () => void
let stopped: number
let answer: { granted: () => void; played: () => void }
let joined: number
let closed: () => void

function listen(name: string, call: (event: unknown) => void): void {
  heard[name] = call
}

beforeEach(() => {
  heard = {}
  stopped = 0
  joined = 0
  answer = { granted: () => {}, played: () => {} }
  page = { hidden: false, baseURI: 'http://box.example:8787/', addEventListener: listen, removeEventListener: () => {} }
  const track = { stop: () => (stopped += 1), addEventListener: (_: string, call: () => void) => (ended = call), getSettings: () => ({}) }
  const stream = { getVideoTracks: () => [track], getTracks: () => [track] }
  const getUserMedia = () => new Promise((resolve) => (answer.granted = () => resolve(stream)))
  vi.stubGlobal('document', page)
  vi.stubGlobal('window', { addEventListener: listen, removeEventListener: () => {}, setTimeout, clearTimeout, setInterval, clearInterval })
  vi.stubGlobal('navigator', { mediaDevices: { getUserMedia } })
  vi.stubGlobal('OffscreenCanvas', class {})
  vi.stubGlobal('Worker', class { terminate(): void {} })
  vi.stubGlobal('WebSocket', class {
    constructor() {
      joined += 1
    }
    set onclose(call: (() => void) | null) {
      if (call !== null) closed = call
    }
    send(): void {}
    close(): void {}
  })
})

function controller(): CaptureController {
  const video = {
    play: () => new Promise<void>((resolve) => (answer.played = resolve)),
    requestVideoFrameCallback: () => 1,
    cancelVideoFrameCallback: () => {},
    videoWidth: 640,
    videoHeight: 480,
  }
  return new CaptureController(video as unknown as HTMLVideoElement, { clear: () => {}, mirrored: false } as Overlay, () => {})
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0))
}

test('a camera that is granted and plays is running', async () => {
  const made = controller()
  void made.start(CHOSEN)
  answer.granted()
  await settled()
  expect(made.state).toBe('opening')
  answer.played()
  await settled()
  expect([made.state, joined, stopped]).toEqual(['running', 1, 0])
  made.dispose()
  expect([made.state, stopped]).toEqual(['stopped', 1])
})

function hide(): void {
  page.hidden = true
  heard.visibilitychange?.({ type: 'visibilitychange' })
}

test.each([
  ['hidden', hide, 'Stopped, because this page was hidden'],
  ['without its device', () => ended(), 'The camera was taken away.'],
])('a page that is %s before the video plays sends nothing', async (_, happens, note) => {
  const made = controller()
  void made.start(CHOSEN)
  answer.granted()
  await settled()
  happens()
  expect([made.state, stopped]).toEqual(['stopped', 1])
  answer.played()
  await settled()
  expect([made.state, joined]).toEqual(['stopped', 0])
  expect(made.note).toContain(note)
})

test('a page that is closed while the person is asked lets the camera go', async () => {
  const made = controller()
  void made.start(CHOSEN)
  made.dispose()
  answer.granted()
  await settled()
  expect([made.state, joined, stopped]).toEqual(['stopped', 0, 1])
})

test('a browser that is no camera of this box any more is off, and needs a code', async () => {
  const session = { scope: null, name: null, camera: null, may_be_camera: false, logged_in: false, open_to: 'nobody' }
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(session), { headers: { 'Content-Type': 'application/json' } })))
  const made = controller()
  void made.start(CHOSEN)
  answer.granted()
  await settled()
  answer.played()
  await settled()
  closed()
  await vi.waitFor(() => expect(made.state).toBe('stopped'))
  expect(made.needsCode).toBe(true)
  expect(made.note).toBe('The box refuses this camera: it is not paired with this box, or no longer, and needs a pairing code.')
  void made.start(CHOSEN)
  expect(made.needsCode).toBe(false)
})

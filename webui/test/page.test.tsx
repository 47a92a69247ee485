// The page drawn from the very document docs/reference/http-api.md shows: the two must agree.

import { renderToString } from 'preact-render-to-string'
import { beforeAll, describe, expect, test, vi } from 'vitest'

import type { Session } from '../src/access/session'
import { App } from '../src/app/App'
import { Camera as CameraPage } from '../src/camera/Camera'
import type { FrameDispatcher } from '../src/live/frameDispatcher'
import type { Connection } from '../src/api/socket'
import { TimelineFeed } from '../src/scheduler/timelineFeed'
import type { AppLatency, BoxState, Camera } from '../src/api/types'
import { documentedState as documented } from './documented'

/** The state of the documentation, without its lost source: that has a test of its own. */
const documentedState = () => ({ ...documented(), sources: [] })

const dispatcher = {} as FrameDispatcher
const SESSION: Session = { scope: 'admin', name: 'Ann', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' }

function page(state: BoxState | null, connection: Connection = { phase: 'live' }, session: Session | null = SESSION): string {
  const html = renderToString(<App connection={connection} state={state} dispatcher={dispatcher} feed={new TimelineFeed(() => {})} onRetry={() => {}} route={{ page: 'overview' }} session={session} />)
  return html.replaceAll('\u202f', ' ')
}

/** What a reader of the page sees of the element with this test id. */
function text(html: string, testid: string): string {
  const at = html.indexOf(`data-testid="${testid}"`)
  if (at === -1) throw new Error(`nothing has the test id ${testid}`)
  const tag = /<(\w+)[^<]*$/.exec(html.slice(0, at))?.[1] as string
  const rest = html.slice(html.indexOf('>', at) + 1)
  return rest.slice(0, rest.indexOf(`</${tag}>`)).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim()
}

beforeAll(() => {
  vi.stubGlobal('location', new URL('http://box.example:8787/'))
  vi.stubGlobal('window', { isSecureContext: true })
})

describe('the documented state', () => {
  const html = page(documentedState())

  test('shows the camera', () => {
    expect(html).toContain('data-camera="gate-2"')
    expect(text(html, 'on-time')).toBe('99.8 %')
    expect(text(html, 'fps')).toBe('9.9')
    expect(text(html, 'variant')).toBe('street-256')
    expect(text(html, 'reason')).toBe('256 × 160 px: ...')
    expect(text(html, 'latency')).toContain('33 ms')
    expect(text(html, 'drops')).toBe('Dropped: 52 sender 3 queue')
  })

  test('shows the box', () => {
    expect(text(html, 'connection')).toBe('Live')
    expect(text(html, 'box-state')).toBe('All is well')
    expect(text(page({ ...documentedState(), cameras: [] }), 'counts')).toBe('9,000 captured = 8,940 on time + 4 late + 53 dropped + 3 pending adds up 14 not as advised')
    expect(text(html, 'events')).toContain('gate-2 moved from 320 × 192 px to 256 × 160 px')
  })

  test('says nothing is well while nobody knows', () => {
    const lost = page(documentedState(), { phase: 'lost', since_ms: 9_000, retry_at_ms: null })
    expect(text(lost, 'box-state')).toBe('Unknown: the box does not answer')
    expect(lost).not.toContain('All is well')
  })

  test('shows execution times by application', () => {
    expect(text(html, 'applications')).toContain('default street-256 P50 8.2 ms P99 11 ms as profiled')
    expect(html).toContain('aria-label="measured P50 8.2 ms, P99 11 ms; profile P50 8.0 ms, P99 12 ms"')
  })

  test('speaks to a screen reader', () => {
    expect(html).toContain('aria-label="Camera gate-2, healthy"')
    expect(html).toContain('aria-label="P50 33 ms of 300 ms: network 21 ms, queue 3.0 ms, inference 8.0 ms, return 1.0 ms"')
  })
})

test('the line for a first camera has a pairing code where the box wants one', () => {
  const state = { ...documentedState(), cameras: [] }
  const line = (session: Session) => /aria-label="Copy (edgebox camera [^"]*)"/.exec(page(state, { phase: 'live' }, session))?.[1]
  expect(line(SESSION)).toBe('edgebox camera scene: --server ws://box.example:8787 --pair CODE')
  expect(line({ ...SESSION, open_to: 'loopback' })).toContain('--pair CODE')
  expect(line({ ...SESSION, open_to: 'everybody' })).toBe('edgebox camera scene: --server ws://box.example:8787')
})

test.each([
  ['viewer', 'settings', 'Log in with an operator’s token to use this page.'],
  ['viewer', 'add', 'Log in with an operator’s token to use this page.'],
  ['operator', 'access', 'Log in with an administrator’s token to use this page.'],
] as const)('a %s whom an address leads to %s is told what it needs', (scope, page, says) => {
  const html = renderToString(<App connection={{ phase: 'live' }} state={documentedState()} dispatcher={dispatcher} feed={new TimelineFeed(() => {})} onRetry={() => {}} route={{ page }} session={{ ...SESSION, scope }} />)
  expect(html).toContain(says)
})

test('only a box of a fleet has a page of all boxes', () => {
  const state = documentedState()
  expect(page(state)).not.toContain('href="#/boxes"')
  expect(page({ ...state, box: { ...state.box, in_fleet: true } })).toContain('href="#/boxes"')
})

test('a camera of which nothing is known yet has its place', () => {
  const state = documentedState()
  const camera: Camera = {
    ...(state.cameras[0] as Camera),
    agent: '',
    grade: 'waiting',
    address: null,
    advice: null,
    on_time_share: null,
    fps: 0,
    latency_ms: null,
    link: { bandwidth_bps: null, throughput_stability: null, rtt_ms: null, clock_error_ms: null, history: [] },
    tracking: null, variant_history: [],
    late_in_window: 0,
    dropped_in_window: {},
    counts: { captured: 0, accepted: 0, on_time: 0, late: 0, pending: 0, dropped: {}, utility: 0, mismatches: 0 },
  }
  const html = page({ ...state, cameras: [camera] })
  expect(text(html, 'on-time')).toBe('–')
  expect(text(html, 'variant')).toBe('no variant yet')
  expect(html).toContain('Waiting for its first frame')
})

test('a camera that left says when and why', () => {
  const state = documentedState()
  const left = { at_ms: state.now_ms, why: 'it said goodbye' }
  const gone = state.cameras.map((camera) => ({ ...camera, connected: false, grade: 'gone' as const, left }))
  vi.setSystemTime(state.now_ms)
  const html = page({ ...state, cameras: gone })
  expect(html).toMatch(/Disconnected at \d\d:\d\d:\d\d: it said goodbye/)
  vi.setSystemTime(state.now_ms + 3 * 86_400_000)
  expect(page({ ...state, cameras: gone })).toMatch(/Disconnected at \d+ \w+, \d\d:\d\d:\d\d: it said goodbye/)
  vi.useRealTimers()
})

test('with several deadlines the later ones and the worth of the answers are shown', () => {
  const state = documentedState()
  expect(page(state)).not.toContain('utility')
  const counts = { ...(state.cameras[0] as Camera).counts, utility: 2942.4 }
  const html = page({ ...state, cameras: state.cameras.map((camera) => ({ ...camera, counts, later: [[500, 0.6]] })) })
  expect(text(html, 'latency')).toContain('worth 0.6 until 500 ms')
  expect(html).toContain('utility 2,942')
})

test('answers that did not run on what the camera had been advised of are counted', () => {
  const state = documentedState()
  expect(text(page(state), 'counts')).toContain('not as advised')
  const counts = { ...(state.cameras[0] as Camera).counts, mismatches: 0 }
  const as_advised = { ...state, box: { ...state.box, counts }, cameras: state.cameras.map((camera) => ({ ...camera, counts })) }
  expect(page(as_advised)).not.toContain('not as advised')
})

test('what was dropped lately stands beside what was dropped ever', () => {
  const html = page(documentedState())
  expect(text(html, 'drops')).toBe('Dropped: 52 sender 3 queue')
  expect(text(html, 'drops-window')).toBe('Last 60 s: 1 sender')
})

test('a camera that fell silent is not mistaken for a new one', () => {
  const state = documentedState()
  const html = page({ ...state, cameras: state.cameras.map((camera) => ({ ...camera, grade: 'waiting' as const, last_frame_s: 75, on_time_share: null })) })
  expect(html).toContain('No frame for 1 min 15 s')
})

test('what an executor has to say is shown', () => {
  const state = documentedState()
  const executors = state.box.executors.map((executor) => ({ ...executor, note: 'CUDA is not usable' }))
  expect(page({ ...state, box: { ...state.box, executors } })).toContain('CUDA is not usable')
})

test('an executor that was lost says why, and when it is tried again', () => {
  const state = documentedState()
  const lost = { state: 'waiting' as const, last_error: { at_ms: state.now_ms, text: 'connection refused' } }
  const html = (retry_s: number | null, provider = 'CPU') => page({ ...state, box: { ...state.box, executors: state.box.executors.map((each) => ({ ...each, ...lost, retry_s, provider })) } })
  expect(text(html(7.2), 'executor-lost')).toBe('Lost: connection refused; the next try is in 8 s')
  expect(text(html(null), 'executor-lost')).toBe('Lost: connection refused')
  expect(text(html(null, ''), 'executor-lost')).toBe('Not there: connection refused')
})

test('an application that is known from before the start is shown', () => {
  const state = documentedState()
  const first = state.box.applications[0] as AppLatency
  const applications = [{ ...first, count: 0, measured_ms: null, expected_ms: { p50: 9.1, p99: 31 } }]
  expect(text(page({ ...state, box: { ...state.box, applications } }), 'applications')).toContain('9.1 ms P99 31 ms remembered')
})

test('without measured applications there is no section of them', () => {
  const state = documentedState()
  expect(page({ ...state, box: { ...state.box, applications: [] } })).not.toContain('data-testid="applications"')
})

test('with several executors each application says which', () => {
  const state = documentedState()
  const first = state.box.applications[0] as AppLatency
  const applications = [first, { ...first, executor: 'cuda:0/0' }]
  expect(text(page({ ...state, box: { ...state.box, applications } }), 'applications')).toContain('street-256 on cuda:0/0')
})

test('power is shown where the machine measures it', () => {
  const state = documentedState()
  expect(page(state)).toContain('package-0')
  expect(page(state)).toContain('16 W')
  expect(page({ ...state, box: { ...state.box, energy: [] } })).not.toContain('Power')
})

test('a box of which nothing is known yet says why it is not ready', () => {
  const state = documentedState()
  const html = page({
    ...state,
    box: { ...state.box, ready: false, ready_reason: 'warming up', planner: { last_ms: null, age_s: null, overdue: false, runs: 0, groups: [] }, decision_us: null, loop_lag_ms: null, executors: [] },
  })
  expect(text(html, 'box-state')).toContain('Not ready: warming up')
})

test('counts that do not add up are told', () => {
  const state = documentedState()
  const html = page({ ...state, cameras: [], box: { ...state.box, counts: { ...state.box.counts, captured: 9007 } } })
  expect(text(html, 'counts')).toContain('off by 7')
})

test('a camera that left stays, greyed', () => {
  const state = documentedState()
  const html = page({ ...state, cameras: state.cameras.map((camera) => ({ ...camera, grade: 'gone' as const, connected: false })) })
  expect(html).toContain('data-health="gone"')
  expect(html).toContain('Disconnected')
})

test('without cameras the page says how to start one', () => {
  expect(page({ ...documentedState(), cameras: [] })).toContain('edgebox camera scene: --server ws://box.example:8787')
})

test('the page of a camera that never gave a picture says why, and what helps', () => {
  const html = renderToString(<CameraPage state={{ ...documented(), cameras: [] }} dispatcher={dispatcher} camera="yard" range={undefined} />)
  expect(text(html, 'unfetched')).toContain('Source lost since 12:03: connection refused What you can do: check that the camera is on')
  expect(html).toContain('rtsp://192.168.1.20')
  expect(html).not.toContain('disconnected')
})

test('a source that never gave a picture has a tile that says why, and what helps', () => {
  const state = { ...documented(), cameras: [] }
  const html = page(state)
  expect(text(html, 'source-tile')).toContain('Source lost since 12:03: connection refused rtsp://192.168.1.20 yard no pictures')
  expect(text(html, 'source-tile')).toContain('To do: check that the camera is on')
  expect(text(html, 'box-state')).toBe('yard: source lost since 12:03: connection refused')
  expect(html).not.toContain('data-testid="empty"')
})

test('a lost connection is told and the last state stays', () => {
  const html = page(documentedState(), { phase: 'lost', since_ms: Date.now(), retry_at_ms: null })
  expect(text(html, 'connection')).toBe('Connection lost')
  expect(html).toContain('data-stale')
  expect(html).toContain('data-camera="gate-2"')
})

test('before the first state the page says what it waits for', () => {
  expect(page(null, { phase: 'connecting' })).toContain('Connecting to the box')
  expect(page(null, { phase: 'lost', since_ms: 0, retry_at_ms: null })).toContain('does not answer')
})

describe('who may do what', () => {
  const links = (html: string) => [...html.matchAll(/<a href="(#[^"]*)"/g)].map(([, href]) => href)

  test('an administrator finds every page, and the way out', () => {
    const html = page(documentedState(), { phase: 'live' }, SESSION)
    expect(links(html)).toEqual(expect.arrayContaining(['#/', '#/scheduler', '#/models', '#/add', '#/settings', '#/access']))
    expect(html).toContain('data-testid="log-out"')
  })

  test('a viewer finds what a viewer may see', () => {
    const html = page(documentedState(), { phase: 'live' }, { ...SESSION, scope: 'viewer' })
    expect(links(html)).toContain('#/models')
    for (const closed of ['#/add', '#/settings', '#/access']) expect(links(html)).not.toContain(closed)
  })

  test('who is not logged in finds the login and nothing else', () => {
    const html = page(null, { phase: 'connecting' }, { ...SESSION, scope: null, name: null, logged_in: false })
    expect(html).toContain('This box needs a login')
    expect(links(html)).toEqual([])
    expect(html).not.toContain('data-testid="log-out"')
  })

  test('who uses an open box without a login finds the way to one, unless nothing is left to allow', () => {
    const open = { ...SESSION, name: null, logged_in: false, open_to: 'loopback' } as const
    expect(page(documentedState(), { phase: 'live' }, { ...open, scope: 'operator' })).toContain('data-testid="log-in"')
    expect(page(documentedState(), { phase: 'live' }, { ...open, scope: 'admin' })).not.toContain('data-testid="log-in"')
    expect(page(documentedState(), { phase: 'live' }, SESSION)).not.toContain('data-testid="log-in"')
  })

  test('a token that opens no page is named', () => {
    expect(page(null, { phase: 'connecting' }, { ...SESSION, scope: 'metrics' })).toContain('is of the scope metrics')
  })
})

test('a camera whose clock is wrong is said to have one, with what helps', () => {
  const state = documented()
  const camera = (state.cameras[0] as Camera).id
  const source = { ...(state.sources[0] as (typeof state.sources)[number]), camera }
  const shown = (capture_times: typeof source.capture_times) =>
    renderToString(<CameraPage state={{ ...state, sources: [{ ...source, capture_times }] }} dispatcher={dispatcher} camera={camera} range={undefined} />)
  expect(text(shown('wrong_clock'), 'wrong-clock')).toContain('Set the camera’s clock')
  expect(shown('arrival')).not.toContain('wrong-clock')
})

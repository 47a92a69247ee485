import { afterEach, expect, test, vi } from 'vitest'

import { addressOf, request } from '../src/api/api'

afterEach(() => vi.unstubAllGlobals())

function answering(status: number, body: string): void {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(body, { status })))
}

const ADDRESSES = { only_here: true, tls: false, addresses: ['box:8787'] }

test('gives the answer', async () => {
  answering(200, JSON.stringify(ADDRESSES))
  expect(await request('GET /v1/addresses')).toEqual(ADDRESSES)
})

test('refuses an answer that is not as described', async () => {
  answering(200, JSON.stringify({ ...ADDRESSES, addresses: 'box:8787' }))
  await expect(request('GET /v1/addresses')).rejects.toMatchObject({
    status: 0, message: "The box's answer is not understood: addresses must be a list. Reload the page if the box was upgraded.",
  })
  answering(200, '<html>')
  await expect(request('GET /v1/addresses')).rejects.toMatchObject({ status: 0 })
})

test('says what a problem document says', async () => {
  answering(409, '{"title": "Conflict", "detail": "gate-2 is connected; stop it first"}')
  const refused = request('DELETE /v1/cameras/{id}', { path: { id: 'gate-2' } })
  await expect(refused).rejects.toMatchObject({ status: 409, message: 'gate-2 is connected; stop it first' })
  answering(502, '<html>')
  await expect(request('GET /v1/plan')).rejects.toMatchObject({ status: 502, message: 'The box answered 502.' })
})

test('says that nobody answers', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed')))
  await expect(request('GET /v1/plan')).rejects.toMatchObject({ status: 0, message: 'The box does not answer.' })
})

test('an answer that breaks off is none', async () => {
  const body = new ReadableStream({ start: (stream) => stream.error(new TypeError('terminated')) })
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(body)))
  await expect(request('GET /v1/plan')).rejects.toMatchObject({ status: 0, message: 'The box does not answer.' })
})

test('an answer without a body is one', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(null, { status: 204 })))
  expect(await request('DELETE /v1/cameras/{id}', { path: { id: 'gate-2' } })).toBeNull()
})

test('sends JSON', async () => {
  const fetch = vi.fn((_route: string, _init: RequestInit) => Promise.resolve(new Response('{}', { status: 400 })))
  vi.stubGlobal('fetch', fetch)
  await request('PATCH /v1/cameras/{id}', { path: { id: 'gate 2' }, body: { slo_ms: 200 } }).catch(() => {})
  expect(fetch).toHaveBeenCalledWith('v1/cameras/gate%202', {
    method: 'PATCH', cache: 'no-store', headers: { 'Content-Type': 'application/json' }, body: '{"slo_ms":200}',
  })
})

test('an address is relative to the page, its parts and its query are escaped', () => {
  expect(addressOf('GET /v1/cameras/{id}/history', { path: { id: 'tür/1' }, query: { range: '1 h' } })).toBe('v1/cameras/t%C3%BCr%2F1/history?range=1+h')
  expect(addressOf('GET /v1/plan')).toBe('v1/plan')
})

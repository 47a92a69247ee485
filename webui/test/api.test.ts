import { afterEach, expect, test, vi } from 'vitest'

import { ask } from '../src/api'

afterEach(() => vi.unstubAllGlobals())

function answering(status: number, body: string): void {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(body, { status })))
}

test('gives the answer', async () => {
  answering(200, '{"a": 1}')
  expect(await ask('v1/x')).toEqual({ a: 1 })
})

test('says what a problem document says', async () => {
  answering(409, '{"title": "Conflict", "detail": "gate-2 is connected; stop it first"}')
  await expect(ask('v1/x')).rejects.toMatchObject({ status: 409, message: 'gate-2 is connected; stop it first' })
  answering(502, '<html>')
  await expect(ask('v1/x')).rejects.toMatchObject({ status: 502, message: 'The box answered 502.' })
})

test('says that nobody answers', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed')))
  await expect(ask('v1/x')).rejects.toMatchObject({ status: 0, message: 'The box does not answer.' })
})

test('sends JSON', async () => {
  const fetch = vi.fn(() => Promise.resolve(new Response('{}')))
  vi.stubGlobal('fetch', fetch)
  await ask('v1/x', { method: 'PATCH', body: { slo_ms: 200 } })
  expect(fetch).toHaveBeenCalledWith('v1/x', {
    method: 'PATCH', cache: 'no-store', headers: { 'Content-Type': 'application/json' }, body: '{"slo_ms":200}',
  })
})

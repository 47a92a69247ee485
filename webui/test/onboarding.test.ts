import { expect, test } from 'vitest'

import { obstacle, explain } from '../src/browser-camera/device'
import { remembered } from '../src/browser-camera/settings'
import { Arrivals, boxAddress, commandLines, freeName, isLoopback, serverOf, SOURCES } from '../src/add/onboarding'

test('an address is read as people type it', () => {
  expect(boxAddress('192.168.1.5:8787')?.href).toBe('http://192.168.1.5:8787/')
  expect(boxAddress(' https://box.example/street ')?.href).toBe('https://box.example/street/')
  expect(boxAddress('192.168.1.5:8787', 'https')?.href).toBe('https://192.168.1.5:8787/')
  expect(boxAddress('http://192.168.1.5:8787', 'https')?.href).toBe('http://192.168.1.5:8787/')
  for (const text of ['', 'http://', 'two words', 'http://[::1']) expect(boxAddress(text)).toBeNull()
})

test('the camera is told scheme and port, so that no default can mislead it', () => {
  expect(serverOf(new URL('http://box:8787/'))).toBe('ws://box:8787')
  expect(serverOf(new URL('http://box/'))).toBe('ws://box:80')
  expect(serverOf(new URL('https://box.example/'))).toBe('wss://box.example:443')
  expect(serverOf(new URL('https://box.example/street/1/'))).toBe('wss://box.example:443/street/1')
  expect(serverOf(new URL("http://box/it's;a&b/"))).toBe("'ws://box:80/it%27s;a&b'")
})

test('the plain package serves a made-up street, all else needs an extra', () => {
  const installs = SOURCES.map((source) => commandLines(source, new URL('http://box:8787/'), 'gate')[1])
  expect(installs.filter((line) => line === '.venv/bin/pip install .')).toHaveLength(1)
  expect(installs.filter((line) => line === ".venv/bin/pip install '.[camera]'")).toHaveLength(SOURCES.length - 1)
})

test('what leads a phone to itself is told from what leads it here', () => {
  for (const host of ['localhost', '127.0.0.1', '127.8.8.8', '[::1]', 'box.localhost']) expect(isLoopback(new URL(`http://${host}/`))).toBe(true)
  for (const host of ['box', '10.0.0.7', 'localhost.example']) expect(isLoopback(new URL(`http://${host}/`))).toBe(false)
})

test('a free name is the first that nobody has', () => {
  expect(freeName([])).toBe('camera-1')
  expect(freeName([{ id: 'camera-1' }, { id: 'camera-3' }])).toBe('camera-2')
})

test('who comes after the page was opened has arrived, the latest first', () => {
  const arrivals = new Arrivals([{ id: 'old', connected: true }, { id: 'away', connected: false }])
  const here = (...ids: string[]) => ids.map((id) => ({ id, connected: true }))
  expect(arrivals.update(here('old'))).toEqual([])
  expect(arrivals.update(here('old', 'away'))).toEqual(['away'])
  expect(arrivals.update(here('old', 'away', 'new'))).toEqual(['new', 'away'])
  expect(arrivals.update([{ id: 'away', connected: false }, ...here('new')])).toEqual(['new', 'away'])
  expect(arrivals.update(here('away', 'new'))).toEqual(['away', 'new'])
})

test('what keeps the camera away is said with a way out', () => {
  const around = { isSecure: true, host: 'box:8787', port: '8787', missing: [] }
  expect(obstacle(around)).toBeNull()
  const insecure = obstacle({ ...around, isSecure: false })
  expect(insecure?.text).toContain('only to pages opened over https or at localhost')
  expect(insecure?.ways[0]?.code).toBe('edgebox serve --host 0.0.0.0 --tls self-signed')
  expect(insecure?.ways.map(({ code }) => code)).toContain('adb reverse tcp:8787 tcp:8787')
  expect(obstacle({ ...around, missing: ['OffscreenCanvas'] })?.text).toContain('lacks OffscreenCanvas')
  const titles = ['NotAllowedError', 'NotFoundError', 'NotReadableError'].map((name) => explain(new DOMException('', name)).title)
  expect(new Set(titles).size).toBe(3)
  expect(explain(new Error('strange')).text).toBe('strange')
})

test('a name in the address comes before one that was chosen before', () => {
  expect(remembered('?name=gate-3', 0).name).toBe('gate-3')
  expect(remembered('?name=no name', 0)).toMatchObject({ name: 'phone-100', deadline: '300', rate_hz: 10 })
})

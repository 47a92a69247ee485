import { afterEach, expect, test, vi } from 'vitest'

import { remembered, settingsOf } from '../src/browser-camera/settings'

afterEach(() => vi.unstubAllGlobals())

function storing(chosen: object): void {
  vi.stubGlobal('localStorage', { getItem: () => JSON.stringify(chosen) })
}

test('what was chosen last is proposed, but for what cannot be', () => {
  storing({ name: 'gate-1', app: 'counting', site: 'yard', rate_hz: 15, deadline: '500' })
  expect(remembered('', 0)).toMatchObject({ name: 'gate-1', app: 'counting', site: 'yard', rate_hz: 15, deadline: '500' })
  expect(remembered('?name=gate-3', 0).name).toBe('gate-3')
  storing({ name: 'a b', site: 'no site!', rate_hz: 7 })
  expect(remembered('', 0)).toMatchObject({ name: 'phone-100', site: '', rate_hz: 10 })
})

test('a site and a model are told only if there is one', () => {
  const chosen = { name: 'gate', app: 'default', site: '', family: '', deadline: '300', rate_hz: 10, device: 'user' }
  expect(settingsOf(chosen)).toEqual({ name: 'gate', app: 'default', slo_ms: 300, rate_hz: 10 })
  expect(settingsOf({ ...chosen, site: 'yard', family: 'deimv2-atto' })).toMatchObject({ site: 'yard', family: 'deimv2-atto' })
})

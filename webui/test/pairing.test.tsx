// @vitest-environment happy-dom
// Whether a browser needs a pairing code before it may be a camera.

import { cleanup, fireEvent, render, screen } from '@testing-library/preact'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { PairingCode, usePairing } from '../src/browser-camera/Pairing'

let mayBeCamera: boolean
let paired: string[]
let started: boolean[]

beforeEach(() => {
  mayBeCamera = true
  paired = []
  started = []
  vi.stubGlobal('fetch', (address: string, { body }: { body?: string }) => {
    if (!address.endsWith('v1/pair')) {
      const session = { scope: 'viewer', name: 'Ann', camera: null, may_be_camera: mayBeCamera, logged_in: true, open_to: 'nobody' }
      return Promise.resolve(new Response(JSON.stringify(session), { headers: { 'Content-Type': 'application/json' } }))
    }
    const { code, camera } = JSON.parse(body ?? '') as { code: string; camera: string }
    paired.push(`${camera} ${code}`)
    mayBeCamera = true
    return Promise.resolve(new Response(JSON.stringify({ camera }), { status: 201, headers: { 'Content-Type': 'application/json' } }))
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function Camera({ off, refused }: { off: boolean; refused: boolean }) {
  const pairing = usePairing(off, refused)
  return (
    <>
      <PairingCode pairing={pairing} />
      <button type="button" onClick={() => void pairing.pair('gate').then((may) => started.push(may))}>Start</button>
    </>
  )
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0))
}

test('a browser whose pairing ended while it was a camera can be paired anew', async () => {
  const { rerender } = render(<Camera off refused={false} />)
  await settled()
  expect(screen.queryByLabelText(/Pairing code/)).toBeNull()
  mayBeCamera = false
  rerender(<Camera off={false} refused={false} />)
  rerender(<Camera off refused={false} />)
  fireEvent.input(await screen.findByLabelText(/Pairing code/), { target: { value: 'K7QF-2M9D' } })
  fireEvent.click(screen.getByText('Start'))
  await vi.waitFor(() => expect(started).toEqual([true]))
  expect(paired).toEqual(['gate K7QF-2M9D'])
  expect(screen.queryByLabelText(/Pairing code/)).toBeNull()
})

test('one that is paired under another name can be paired anew, or be that one again', async () => {
  render(<Camera off refused />)
  await settled()
  expect(screen.getByLabelText(/Pairing code/)).toBeTruthy()
  fireEvent.click(screen.getByText('Start'))
  await vi.waitFor(() => expect(started).toEqual([true]))
  expect(paired).toEqual([])
})

test('one that needs a code is told so when it starts without', async () => {
  mayBeCamera = false
  render(<Camera off refused={false} />)
  await screen.findByLabelText(/Pairing code/)
  fireEvent.click(screen.getByText('Start'))
  await vi.waitFor(() => expect(started).toEqual([false]))
  expect(screen.getByTestId('pairing-refused').textContent).toBe('Enter a pairing code first.')
})

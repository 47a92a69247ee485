// What to do first: shown until a camera has connected.

import notices from '../ui/notices.module.css'

import { LogInHint } from '../access/LogInHint'
import { useMay, useSession } from '../access/session'
import { isLoopback, serverOf } from '../add/onboarding'
import { hashOf } from '../app/route'
import { SCOPES } from '../app/scopes'
import { Command } from '../ui/Command'
import { plural } from '../ui/format'

interface NoCamerasProps {
  ready: boolean
  /** Cameras that the box is about to fetch. */
  expected: number
}

export function NoCameras({ ready, expected }: NoCamerasProps) {
  const session = useSession()
  const mayAdd = useMay(SCOPES.add)
  if (!ready || expected > 0) return (
    <section class={notices.empty} aria-labelledby="empty-title" data-testid="empty">
      <h2 id="empty-title">{ready ? `Connecting to ${plural(expected, 'camera')}` : 'The box is getting ready'}</h2>
      <p>{ready ? 'They show up here with their first pictures.' : 'Cameras that it knows connect by themselves and show up here.'}</p>
      {mayAdd && <p><a href={hashOf({ page: 'add' })}>Add a camera</a>: a stream, a USB camera, a video file, or a phone.</p>}
    </section>
  )
  if (!mayAdd) return (
    <section class={notices.empty} aria-labelledby="empty-title" data-testid="empty">
      <h2 id="empty-title">No camera yet</h2>
      <p>The box is ready. Cameras show up here when they connect.</p>
      <p><LogInHint scope="operator" to="add one" /></p>
    </section>
  )
  const here = new URL('./', location.href)
  const local = isLoopback(here)
  const open = session?.open_to === 'everybody' || (session?.open_to === 'loopback' && local)
  const command = `edgebox camera scene: --server ${serverOf(here)}${open ? '' : ' --pair CODE'}`
  return (
    <section class={notices.empty} aria-labelledby="empty-title" data-testid="empty">
      <h2 id="empty-title">No camera yet</h2>
      <p>
        The box is ready. Start a first camera, a synthetic street scene, on {local ? 'this machine' : 'any machine that reaches it'}:
      </p>
      <Command text={command} />
      {!open && <p class="muted">The box printed this line whole at its start: CODE is a pairing code, which works once, within ten minutes. Later the page Add a camera gives another one.</p>}
      <p class="muted">It shows up here within a second, with its frames, its link and what the box decides for it.</p>
      <p><a href={hashOf({ page: 'add' })}>Add a camera of your own</a>: a stream, a USB camera, a video file, or a phone{local && ', on this machine or another'}.</p>
    </section>
  )
}

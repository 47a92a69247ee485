// What to do first: shown until a camera has connected.

import notices from '../ui/notices.module.css'

import { serverOf } from '../add/onboarding'
import { hashOf } from '../app/route'
import { Command } from '../ui/Command'

export function NoCameras({ ready }: { ready: boolean }) {
  const command = `edgebox camera scene: --server ${serverOf(new URL('./', location.href))}`
  return (
    <section class={notices.empty} aria-labelledby="empty-title" data-testid="empty">
      <h2 id="empty-title">No camera yet</h2>
      <p>
        {ready
          ? 'The box is ready. Start a first camera, a synthetic street scene, on this machine or any other that reaches it:'
          : 'The box is getting ready. Meanwhile, this starts a first camera, a synthetic street scene; it connects by itself:'}
      </p>
      <Command text={command} />
      <p class="muted">It shows up here within a second, with its frames, its link and what the box decides for it.</p>
      <p><a href={hashOf({ page: 'add' })}>Add a camera of your own</a>: a stream, a USB camera, a video file, or a phone.</p>
    </section>
  )
}

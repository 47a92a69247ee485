// The whole page: header, the box, the cameras, what happened.

import { useEffect, useState } from 'preact/hooks'

import type { Gallery } from '../gallery'
import type { Connection } from '../socket'
import type { BoxState } from '../types'
import { Applications } from './Applications'
import { BoxLine } from './BoxLine'
import { CameraTile } from './CameraTile'
import { ConnectionBar, ConnectionPill } from './ConnectionStatus'
import { Events } from './Events'
import { Guard } from './Guard'
import { Logo } from './icons'
import { NoCameras } from './NoCameras'
import { ThemeButton } from './ThemeButton'

export interface AppProps {
  connection: Connection
  state: BoxState | null
  gallery: Gallery
  onRetry: () => void
}

export function App({ connection, state, gallery, onRetry }: AppProps) {
  const [enlarged, enlarge] = useState<string | null>(null)
  useEffect(() => {
    if (enlarged === null) return
    const close = (event: KeyboardEvent) => {
      if (event.key === 'Escape') enlarge(null)
    }
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  }, [enlarged])

  // A camera keeps its place whatever becomes of it: tiles that move are hard to watch.
  const cameras = [...(state?.cameras ?? [])].sort((a, b) => BY_NAME.compare(a.id, b.id))
  return (
    <div class={`page ${connection.phase === 'lost' ? 'stale' : ''}`}>
      <header class="top">
        <h1>
          <Logo /> edgebox
        </h1>
        {state && (
          <p class="top-facts">
            {state.box.name !== 'edgebox' && <span>{state.box.name}</span>}
            <span>{state.box.version}</span>
          </p>
        )}
        <ConnectionPill connection={connection} />
        <ThemeButton />
      </header>
      {state ? (
        <>
          <Guard what="The box's state">
            <BoxLine state={state} />
          </Guard>
          <div class="columns">
            <main aria-label="Cameras">
              {cameras.length === 0 && <NoCameras ready={state.box.ready} />}
              <div class="tiles">
                {cameras.map((camera) => (
                  <Guard key={camera.id} what={`Camera ${camera.id}`}>
                    <CameraTile
                      camera={camera}
                      window_s={state.box.window_s}
                      gallery={gallery}
                      enlarged={camera.id === enlarged}
                      onToggle={() => enlarge(camera.id === enlarged ? null : camera.id)}
                    />
                  </Guard>
                ))}
              </div>
            </main>
            <Events events={state.box.events} />
          </div>
          <Guard what="Execution by application">
            <Applications applications={state.box.applications} />
          </Guard>
        </>
      ) : (
        <main class="opening">
          <p>{connection.phase === 'lost' ? 'The box does not answer.' : 'Connecting to the box…'}</p>
        </main>
      )}
      <ConnectionBar connection={connection} onRetry={onRetry} />
    </div>
  )
}

const BY_NAME = new Intl.Collator('en', { numeric: true })

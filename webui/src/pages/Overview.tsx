// All cameras live, and the box's health.

import styles from './Overview.module.css'

import { useEffect, useState } from 'preact/hooks'

import { Applications } from '../components/Applications'
import { BoxLine } from '../components/BoxLine'
import { CameraTile } from '../components/CameraTile'
import { Events } from '../components/Events'
import { Guard } from '../components/Guard'
import { NoCameras } from '../components/NoCameras'
import type { Gallery } from '../gallery'
import type { BoxState } from '../types'

export interface PageProps {
  state: BoxState
  gallery: Gallery
}

export function Overview({ state, gallery }: PageProps) {
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
  const cameras = [...state.cameras].sort((a, b) => BY_NAME.compare(a.id, b.id))
  return (
    <>
      <Guard what="The box's state">
        <BoxLine state={state} />
      </Guard>
      <div class={`live-data ${styles.columns}`}>
        <main aria-label="Cameras">
          {cameras.length === 0 && <NoCameras ready={state.box.ready} />}
          <div class={styles.tiles}>
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
  )
}

const BY_NAME = new Intl.Collator('en', { numeric: true })

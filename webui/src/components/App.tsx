// The frame around every page: header, links between the pages, the page that the address names.

import frame from './frame.module.css'
import notices from './notices.module.css'

import type { Gallery } from '../gallery'
import { Overview } from '../pages/Overview'
import type { Route } from '../route'
import type { Connection } from '../socket'
import type { TimelineFeed } from '../timeline/feed'
import type { BoxState } from '../types'
import { ConnectionBar, ConnectionPill } from './ConnectionStatus'
import { Logo } from './icons'
import { Lazy } from './Lazy'
import { Nav } from './Nav'
import { ThemeButton } from './ThemeButton'

export interface AppProps {
  connection: Connection
  state: BoxState | null
  gallery: Gallery
  feed: TimelineFeed
  onRetry: () => void
  route: Route
}

export function App({ connection, state, gallery, feed, onRetry, route }: AppProps) {
  return (
    <div class={frame.page} data-stale={connection.phase === 'lost' || undefined}>
      <header class={frame.top}>
        <h1>
          <Logo /> edgebox
        </h1>
        {state && (
          <p class={frame.topFacts}>
            {state.box.name !== 'edgebox' && <span>{state.box.name}</span>}
            <span>{state.box.version}</span>
          </p>
        )}
        <Nav route={route} />
        <ConnectionPill connection={connection} />
        <ThemeButton />
      </header>
      {state ? (
        <Place route={route} state={state} gallery={gallery} feed={feed} />
      ) : (
        <main class={notices.opening}>
          <p>{connection.phase === 'lost' ? 'The box does not answer.' : 'Connecting to the box…'}</p>
        </main>
      )}
      <ConnectionBar connection={connection} onRetry={onRetry} />
    </div>
  )
}

function Place({
  route,
  state,
  gallery,
  feed,
}: Pick<AppProps, 'gallery' | 'feed' | 'route'> & { state: BoxState }) {
  switch (route.place) {
    case 'add':
      return <Lazy load={addPage} props={{ state, gallery }} />
    case 'scheduler':
      return <Lazy load={schedulerPage} props={{ state, feed }} />
    case 'models':
      return <Lazy load={modelsPage} props={{ state }} />
    case 'settings':
      return <Lazy load={settingsPage} props={{ state }} />
    case 'camera':
      return <Lazy load={cameraPage} props={{ state, gallery, camera: route.camera ?? '', range: route.range }} />
    default:
      return <Overview state={state} gallery={gallery} />
  }
}

const addPage = async () => (await import('../pages/Add')).Add
const cameraPage = async () => (await import('../pages/Camera')).Camera
const schedulerPage = async () => (await import('../pages/Scheduler')).Scheduler
const modelsPage = async () => (await import('../pages/Models')).Models
const settingsPage = async () => (await import('../pages/Settings')).Settings

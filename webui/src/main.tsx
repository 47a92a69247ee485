// Starts the page: the socket feeds states to the component tree and frames to the canvases.

import 'uplot/dist/uPlot.min.css'
import './global.css'

import { render } from 'preact'

import { App } from './components/App'
import { Gallery } from './gallery'
import { shouldReload } from './reconnect'
import { routeOf } from './route'
import { BoxSocket, socketAddress, type Connection } from './socket'
import { applyTheme, savedTheme } from './theme'
import { TimelineFeed } from './timeline/feed'
import { titleOf } from './titles'
import type { BoxState } from './types'

const RELOADED_FOR = 'edgebox.reloaded-for'

const root = document.getElementById('app')
if (!root) throw new Error('the page has no #app')

const gallery: Gallery = new Gallery((wanted) => socket.watchFrames(wanted))
let connection: Connection = { phase: 'connecting' }
let state: BoxState | null = null
let loadedWith: string | null = null

const socket = new BoxSocket(socketAddress(document.baseURI), {
  onConnection(next) {
    if (next.phase === 'live' && connection.phase === 'live') return
    connection = next
    draw()
  },
  onState(next) {
    loadedWith ??= next.box.version
    if (reloadForUpgrade(loadedWith, next.box.version)) return
    gallery.labels = next.box.labels
    state = next
    draw()
  },
  onFrame: (frame) => gallery.show(frame),
  onTimeline: (news) => feed.take(news),
})
const feed = new TimelineFeed((wanted) => socket.watchTimeline(wanted))

function draw(): void {
  const route = routeOf(location.hash)
  document.title = titleOf(route, state?.box.name ?? 'edgebox')
  render(
    <App
      connection={connection}
      state={state}
      gallery={gallery}
      feed={feed}
      onRetry={() => socket.retryNow()}
      route={route}
    />,
    root as HTMLElement,
  )
}

function reloadForUpgrade(loaded: string, seen: string): boolean {
  try {
    if (!shouldReload(loaded, seen, sessionStorage.getItem(RELOADED_FOR))) return false
    sessionStorage.setItem(RELOADED_FOR, seen)
  } catch {
    // Without storage nothing would stop a second reload.
    return false
  }
  location.reload()
  return true
}

applyTheme(savedTheme())
socket.start()
let shown = routeOf(location.hash)
window.addEventListener('hashchange', () => {
  draw()
  const before = shown
  shown = routeOf(location.hash)
  // Another stretch of time on the same page is no other page.
  if (shown.place !== before.place || shown.camera !== before.camera) window.scrollTo(0, 0)
})

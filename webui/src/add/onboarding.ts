// What a new camera is told, and how its arrival is noticed. Pure.

import type { Camera } from '../api/types'

export interface Source {
  key: string
  name: string
  /** What to put in, if not as it stands. */
  hint: string
  /** As `edgebox camera` takes it. */
  source: string
  /** The parts of edgebox it needs: "" is the plain package. */
  extra: string
}

export const SOURCES: readonly Source[] = [
  { key: 'rtsp', name: 'Network camera', source: 'rtsp://CAMERA/stream', extra: '[camera]', hint: 'Put in the address of the camera’s own stream; its manual or its web page has it. An MJPEG stream over http:// works, too. If it asks for a login, add --source-username USER --source-password-file FILE: everybody on that machine can read a password in a command.' },
  { key: 'usb', name: 'USB camera', source: 'webcam', extra: '[camera]', hint: 'The first camera of that machine; /dev/video2 and the like for another one.' },
  { key: 'file', name: 'Video file', source: 'street.mp4', extra: '[camera]', hint: 'Played at its own speed and over again, as if a camera saw it. A folder of pictures works, too.' },
  { key: 'scene', name: 'None, to try it', source: 'scene:', extra: '', hint: 'A made-up street: needs no camera at all.' },
]

/** The three lines to run beside the camera, in edgebox's source folder; with a pairing code, where there is one. */
export function commandLines({ source, extra }: Source, box: URL, name: string, code = ''): string[] {
  return [
    'python3 -m venv .venv',
    `.venv/bin/pip install ${extra ? `'.${extra}'` : '.'}`,
    `.venv/bin/edgebox camera ${source} --server ${serverOf(box)} --name ${name}${code && ` --pair ${code}`}`,
  ]
}

/** The box's address as `edgebox camera --server` takes it, with the path under which a proxy serves it. */
export function serverOf(box: URL): string {
  const secure = box.protocol === 'https:'
  // Left out, it would be the box's own port for ws, not the web's.
  const port = box.port || (secure ? '443' : '80')
  const address = `${secure ? 'wss' : 'ws'}://${box.hostname}:${port}${box.pathname.replace(/\/+$/, '')}`
  // A path may hold what a shell would not take as it stands.
  return /^[\w:/.@%+~[\]-]+$/.test(address) ? address : `'${address.replaceAll("'", '%27')}'`
}

/** An address as a person types it, as the folder of the page; null: it is none. Without a scheme it gets this one. */
export function boxAddress(text: string, scheme = 'http'): URL | null {
  const typed = text.trim()
  try {
    const address = new URL(/^https?:\/\//.test(typed) ? typed : `${scheme}://${typed}`)
    if (!address.hostname || /\s/.test(typed)) return null
    address.search = ''
    address.hash = ''
    if (!address.pathname.endsWith('/')) address.pathname += '/'
    return address
  } catch {
    return null
  }
}

/** Whether this address leads every machine to itself. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || /^127\./.test(hostname) || hostname === '[::1]'
}

/** The first of camera-1, camera-2, ... that nobody has. */
export function freeName(cameras: readonly Pick<Camera, 'id'>[]): string {
  const taken = new Set(cameras.map(({ id }) => id))
  let number = 1
  while (taken.has(`camera-${number}`)) number += 1
  return `camera-${number}`
}

type Present = Pick<Camera, 'id' | 'connected'>

/** Which cameras have come since the page was opened, in the order of their coming. */
export class Arrivals {
  private readonly present = new Set<string>()
  private readonly arrived = new Set<string>()

  constructor(atOpening: readonly Present[]) {
    for (const { id, connected } of atOpening) if (connected) this.present.add(id)
  }

  /** Learn of the present state; the names of those that came, the latest first. */
  update(cameras: readonly Present[]): string[] {
    for (const { id, connected } of cameras) {
      if (!connected) this.present.delete(id)
      else if (!this.present.has(id)) {
        this.present.add(id)
        this.arrived.delete(id)
        this.arrived.add(id)
      }
    }
    return [...this.arrived].reverse()
  }
}

// Owns the device's camera: which one, how it is asked for, and what to do when it cannot be had.

import { messageOf } from '../api/api'

/** Which camera: the one on the back, the one on the front, or a device by its id. */
export type Choice = 'environment' | 'user' | (string & {})

/** What keeps the camera away, and what a person can do about it. */
export interface CameraError {
  title: string
  text: string
  /** Each a way out; `code` is something to type. */
  ways: ReadonlyArray<{ text: string; code?: string }>
}

export interface Surroundings {
  /** Whether browsers give this page cameras at all: over https or at localhost. */
  isSecure: boolean
  /** Where the page was opened. */
  host: string
  port: string
  /** Camera, worker canvas, frame callbacks: what this page cannot do without. */
  missing: readonly string[]
}

export function surroundings(): Surroundings {
  return { isSecure: window.isSecureContext, host: location.host, port: location.port || '80', missing: missingFeatures() }
}

function missingFeatures(): string[] {
  const needed: ReadonlyArray<readonly [string, boolean]> = [
    ['a camera for pages', !!navigator.mediaDevices?.getUserMedia],
    ['OffscreenCanvas', typeof OffscreenCanvas !== 'undefined'],
    ['requestVideoFrameCallback', 'requestVideoFrameCallback' in HTMLVideoElement.prototype],
  ]
  return needed.filter(([, there]) => !there).map(([name]) => name)
}

/** What stands in the way before anything was tried; null: nothing. Pure. */
export function obstacle({ isSecure, host, port, missing }: Surroundings): CameraError | null {
  if (!isSecure) {
    return {
      title: 'This page needs https or localhost',
      text: `Browsers give cameras only to pages opened over https or at localhost, and this one was opened at http://${host}. Four ways to get there:`,
      ways: [
        { text: 'For good: let the box serve with TLS (its extra tls), and open this page with https. The phone warns once of a certificate that the box has signed itself:', code: 'edgebox serve --host 0.0.0.0 --tls self-signed' },
        { text: 'Or a proxy with TLS before the box. With Caddy it is one line, on the box:', code: `caddy reverse-proxy --from https://${hostOnly(host)} --to 127.0.0.1:${port} --internal-certs` },
        { text: 'To try an Android phone on a USB cable: on the computer it is plugged into, then open localhost:8787/camera on the phone:', code: `adb reverse tcp:8787 tcp:${port}` },
        { text: 'To try a laptop that may log in to the box: on the laptop, then open localhost:8787/camera there:', code: `ssh -L 8787:127.0.0.1:${port} ${hostOnly(host)}` },
      ],
    }
  }
  if (missing.length) {
    return {
      title: 'This browser is too old',
      text: `It lacks ${missing.join(', ')}. Chrome and Edge 94, Safari 17 and Firefox 132, and newer ones, have all that is needed.`,
      ways: [],
    }
  }
  return null
}

/** What went wrong with asking for the camera. Pure. */
export function explain(error: unknown): CameraError {
  const name = error instanceof DOMException ? error.name : ''
  switch (name) {
    case 'NotAllowedError':
    case 'SecurityError':
      return {
        title: 'The camera was refused',
        text: 'This browser, or whoever was asked, does not let the page use the camera. Pictures go to your box and nowhere else; nothing is recorded. To allow it:',
        ways: [
          { text: 'Tap the sign before the address (a lock, or two sliders), set Camera to "Allow", and press Start again.' },
          { text: 'Nothing there? Allow the browser itself the camera, in the settings of the phone or computer (Privacy, Camera).' },
        ],
      }
    case 'NotFoundError':
    case 'OverconstrainedError':
      return {
        title: 'No such camera',
        text: 'This device has no camera, or not the one that was chosen.',
        ways: [{ text: 'Choose another one above, or plug one in, and press Start again.' }],
      }
    case 'NotReadableError':
    case 'AbortError':
      return {
        title: 'The camera is busy',
        text: 'The camera is there but gives no picture. Another program or tab probably uses it.',
        ways: [{ text: 'Close what uses it, and press Start again.' }],
      }
    default:
      return { title: 'The camera cannot be used', text: messageOf(error), ways: [] }
  }
}

/** Ask for the camera. Throws what the browser says; `explain` puts it into words. */
export function openCamera(choice: Choice, rate_hz: number): Promise<MediaStream> {
  const which: MediaTrackConstraints =
    choice === 'environment' || choice === 'user' ? { facingMode: { ideal: choice } } : { deviceId: { exact: choice } }
  const wanted = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: Math.max(30, rate_hz) } }
  return navigator.mediaDevices.getUserMedia({ video: { ...which, ...wanted }, audio: false })
}

/** The cameras of this device; their names are told only after one was allowed. */
export async function cameras(): Promise<Array<{ id: string; name: string }>> {
  const devices = await navigator.mediaDevices.enumerateDevices()
  return devices.filter(({ kind, label, deviceId }) => kind === 'videoinput' && label && deviceId).map(({ deviceId, label }) => ({ id: deviceId, name: label }))
}

/** Whether the picture is of the person before the screen, who expects a mirror. */
export function isMirror(stream: MediaStream, choice: Choice): boolean {
  const facing = stream.getVideoTracks()[0]?.getSettings().facingMode
  return facing === undefined ? choice === 'user' : facing === 'user'
}

function hostOnly(host: string): string {
  return host.replace(/:\d+$/, '')
}

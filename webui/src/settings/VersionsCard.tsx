// What this box is made of.

import styles from './VersionsCard.module.css'

import type { System } from './configuration'
import { providerName } from '../ui/names'

export function VersionsCard({ system }: { system: System }) {
  const providers = system.providers.map((name) => providerName(name)).join(', ')
  const rows = [
    ['edgebox', system.edgebox], ['Python', system.python], ['ONNX Runtime', system.onnxruntime ?? 'not installed as a package'],
    ['built with', providers], ['machine', system.platform],
  ] as const
  return (
    <section class={`${styles.versions} card`} aria-labelledby="versions-title" data-testid="versions">
      <h2 id="versions-title">Versions</h2>
      <dl>{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  )
}

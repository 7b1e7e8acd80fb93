import type { Plugin } from '../../api/schema'
import { StateTag } from '../../ui/state-tag'

/** How the last delivery to a plugin went, or that the plugin is off. */
export function PluginHealth({ plugin: { active, health } }: { plugin: Plugin }) {
  if (!active) return <StateTag label="Off" />
  if (health.status === 'ok') return <StateTag label="Healthy" tone="good" />
  if (health.status === 'failing') return <StateTag label="Failing" tone="bad" />
  return <StateTag label="Not used yet" />
}

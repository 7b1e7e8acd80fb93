import { Switch } from '@mantine/core'
import type { Integration } from '../../api/schema'
import { showProblem, showUndo } from '../../ui/notices'
import { switchIntegration } from './integration-queries'

type ActiveSwitchProps = { integration: Integration; hasLabel?: boolean }

/** A switch that turns an integration on and off, which can be undone for a while. */
export function ActiveSwitch({ integration: { _id, name, active }, hasLabel }: ActiveSwitchProps) {
  const title = name || 'This integration'
  const change = async () => {
    try {
      await switchIntegration(_id, !active)
      showUndo(`${title} is ${active ? 'off' : 'on'}.`, () => switchIntegration(_id, active))
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <Switch
      size="xs"
      aria-label={`${title} is on`}
      label={hasLabel && (active ? 'On' : 'Off')}
      checked={active}
      onChange={change}
    />
  )
}

import { useNavigate } from '@tanstack/react-router'
import { FieldForm } from '../fields/field-form'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { newConfigurationFields } from './configuration-fields'
import { createConfiguration } from './configuration-queries'

const FORM_ID = 'new-configuration'

/** A form for a new configuration beside the list. */
export function NewConfigurationPanel() {
  const navigate = useNavigate()
  return (
    <SidePanel
      title="New configuration"
      onClose={() => navigate({ to: '/content/configurations' })}
      footer={<SaveButton form={FORM_ID} label="Create configuration" />}
    >
      <FieldForm
        id={FORM_ID}
        fields={newConfigurationFields}
        draftKey="configuration:"
        save={(_, values) => createConfiguration(values)}
        onSaved={({ key }) => navigate({ to: '/content/configurations/$key', params: { key }, replace: true })}
      />
    </SidePanel>
  )
}

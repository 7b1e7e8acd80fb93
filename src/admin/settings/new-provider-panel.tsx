import { useNavigate } from '@tanstack/react-router'
import { ApiProblem } from '../api/problem'
import { FieldForm, type FormValues } from '../fields/field-form'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { APPLE, newProviderFields, toProvider, usesOpenId } from './provider-fields'
import { changeProviders, refreshAuthConfiguration } from './settings-queries'

const FORM_ID = 'provider'

/** Adds a provider, and returns its name. @throws ApiProblem at the field of the name when there is such a provider */
async function addProvider(values: FormValues): Promise<string> {
  const isOpenId = usesOpenId(values)
  const key = isOpenId ? 'name' : 'provider'
  const name = String(values[key] ?? '')
  await changeProviders((providers) => {
    const message = `The provider ${name} is set up already.`
    if (Object.hasOwn(providers, name))
      throw new ApiProblem(400, 'INVALID_INPUT', message, [{ path: `/${key}`, message }], null)
    return { ...providers, [name]: toProvider(values, { isOpenId, isApple: name === APPLE }) }
  })
  return name
}

/** A form for another provider. */
export function NewProviderPanel() {
  const navigate = useNavigate()
  return (
    <SidePanel
      title="Add a provider"
      onClose={() => navigate({ to: '/settings/sign-in' })}
      footer={<SaveButton form={FORM_ID} label="Add provider" />}
    >
      <FieldForm
        id={FORM_ID}
        fields={newProviderFields}
        draftKey="settings-provider"
        save={(_changes, values) => addProvider(values)}
        onSaved={async (provider) => {
          await refreshAuthConfiguration()
          await navigate({ to: '/settings/sign-in/$provider', params: { provider }, replace: true })
        }}
      />
    </SidePanel>
  )
}

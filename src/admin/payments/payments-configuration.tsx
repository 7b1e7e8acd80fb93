import { Button, Menu, Title } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { PaymentsConfiguration as Configuration, IntegrationSource } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { Screen } from '../ui/screen'
import { labelledChoice } from './labelled-choice'
import { useListNavigation } from './list-navigation'
import { configurationQuery, providerConnectionsQuery, refreshPayments } from './payment-queries'
import classes from './payments.module.css'
import { currencies } from './plan-fields'
import { ProviderList } from './provider-connections'
import { providerKinds, providers } from './providers'

const FORM_ID = 'payments-configuration-form'

const listFields = (connections: readonly IntegrationSource[]): FormField[] => [
  {
    key: 'metadata/isEnabled',
    type: 'boolean',
    title: 'Customers can pay',
    description: 'Without it, only plans that cost nothing can be subscribed to.',
  },
  {
    key: 'metadata/paymentSourceId',
    type: 'string',
    title: 'Provider of new subscriptions',
    description: 'Existing subscriptions keep the one they began with.',
    Input: labelledChoice(connections.map(({ _id, name }) => ({ value: _id, label: name }))),
  },
  {
    key: 'metadata/defaultCurrency',
    type: 'string',
    title: 'Currency',
    enum: currencies,
    required: true,
    description: 'Of new plans and coupons.',
  },
  {
    key: 'metadata/gracePeriodDays',
    type: 'number',
    title: 'Days of grace',
    min: 0,
    description: 'How long a payment may be overdue before the subscription is cancelled.',
  },
  {
    key: 'metadata/workspaceAdminsOnly',
    type: 'boolean',
    title: 'Only admins of a workspace subscribe and cancel for it',
  },
  { key: 'metadata/successUrl', type: 'url', title: 'Page after a payment' },
  { key: 'metadata/cancelUrl', type: 'url', title: 'Page after a checkout that was left' },
]

/** The fields have the paths at which the server finds flaws. */
const toPaths = (metadata: Record<string, unknown>): FormValues =>
  Object.fromEntries(
    Object.entries({ workspaceAdminsOnly: false, ...metadata }).map(([key, value]) => [`metadata/${key}`, value]),
  )

async function saveConfiguration(changes: FormValues): Promise<Configuration> {
  const metadata = Object.fromEntries(
    Object.entries(changes).map(([path, value]) => [path.slice('metadata/'.length), value]),
  )
  const saved = await fetchData(api.PUT('/api/payments/configuration', { body: { metadata } }))
  showNotice('The configuration is saved.')
  return saved
}

/** Who processes payments, and how. */
export function PaymentsConfiguration() {
  const { open } = useListNavigation('/payments/configuration')
  const { connection, kind } = useParams({ strict: false }) as { connection?: string; kind?: string }
  const configuration = useQuery(configurationQuery)
  const connections = useQuery(providerConnectionsQuery)
  const error = configuration.error ?? connections.error
  return (
    <Screen
      title="Configuration"
      request={{ method: 'GET', path: '/api/payments/configuration' }}
      actions={
        <Menu position="bottom-end">
          <Menu.Target>
            <Button leftSection={<IconPlus size={14} />}>Add provider</Button>
          </Menu.Target>
          <Menu.Dropdown>
            {providerKinds.map((each) => (
              <Menu.Item key={each} onClick={() => open(`new/${each}`)}>
                {providers[each].label}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      }
    >
      <div className={classes.page}>
        {error && <ProblemMessage error={error} />}
        {connections.data && configuration.data && (
          <>
            <ProviderList
              connections={connections.data}
              activeId={configuration.data.metadata.paymentSourceId as string | undefined}
              isEnabled={configuration.data.metadata.isEnabled === true}
            />
            <section className={classes.narrow}>
              <Title order={2} mb="sm">
                Settings
              </Title>
              <FieldForm
                key={JSON.stringify(configuration.data)}
                id={FORM_ID}
                fields={listFields(connections.data)}
                before={toPaths(configuration.data.metadata)}
                draftKey="payments-configuration"
                save={saveConfiguration}
                onSaved={() => void refreshPayments()}
              />
              <div className={classes.formFoot}>
                <SaveButton form={FORM_ID} />
              </div>
            </section>
          </>
        )}
      </div>
      <Outlet key={connection ?? kind} />
    </Screen>
  )
}

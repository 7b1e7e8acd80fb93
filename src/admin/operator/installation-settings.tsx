import { Text, TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { fetchData } from '../api/client'
import type { OperatorSetting } from '../api/schema'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import { DefaultTenantForm } from './default-tenant'
import classes from './installation-settings.module.css'
import { operatorApi } from './operator-api'

/** The settings of the installation with their sources. They can only be changed where the server is started. */
export function InstallationSettings() {
  const [searched, setSearched] = useState('')
  const { data = [], error } = useQuery({
    queryKey: ['operator', 'settings'],
    queryFn: () => fetchData(operatorApi.GET('/operator/settings')),
  })
  const matches = ({ name, description }: OperatorSetting) =>
    `${name} ${description}`.toLowerCase().includes(searched.toLowerCase())
  return (
    <Screen
      title="Settings"
      actions={
        <TextInput
          size="xs"
          aria-label="Search settings"
          placeholder="Search"
          leftSection={<IconSearch size={14} />}
          value={searched}
          onChange={(event) => setSearched(event.currentTarget.value)}
        />
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus */}
      <section className={classes.column} tabIndex={0} aria-label="Settings of the installation">
        <DefaultTenantForm />
        <Text size="sm" c="dimmed" mb="sm">
          Settings are set in the environment of the server or in atoll.json, and take effect when it starts. Secrets
          are not shown.
        </Text>
        {error && <ProblemMessage error={error} />}
        <dl className={classes.list}>
          {data.filter(matches).map((setting) => (
            <SettingRow key={setting.name} setting={setting} />
          ))}
        </dl>
      </section>
    </Screen>
  )
}

const SettingRow = ({ setting: { name, value, source, description } }: { setting: OperatorSetting }) => (
  <div className={classes.row}>
    <dt className={classes.name}>
      {name}
      <span className={classes.description}>{description}</span>
    </dt>
    <dd className={classes.value}>
      <code>{value === '' ? '—' : value}</code>
      <StateTag
        label={source === 'default' ? 'Default' : source === 'environment' ? 'Environment' : 'atoll.json'}
        tone={source === 'default' ? 'neutral' : 'good'}
      />
    </dd>
  </div>
)

/**
 * A small corpus that was written for these tests and so is free to use. Each text comes with questions that it answers,
 * worded as people ask them and not as the text puts it.
 */
export const corpus: { name: string; text: string; questions: string[] }[] = [
  {
    name: 'whales.md',
    text: `# Blue whales

The blue whale is the largest animal that is known to have lived. An adult is up to thirty metres long and weighs as much as thirty elephants. Its tongue alone weighs as much as one of them.

## What they eat

It lives on krill, shrimps no longer than a finger. It takes in a mouthful of sea water, presses the water out through its baleen plates, and swallows what is left: some four tonnes in a day.`,
    questions: ['What is the largest animal of all?', 'What do blue whales eat, and how much of it each day?'],
  },
  {
    name: 'bees.md',
    text: `# The dance of the honey bee

A bee that has found flowers tells the others in the dark of the hive by a dance. She runs in a figure of eight and waggles her body on the middle line. The angle of that line to the vertical is the angle between the flowers and the sun, and the longer she waggles, the further away they are. Karl von Frisch worked this out in the 1940s.`,
    questions: ['How does a bee tell the hive where flowers are?', 'Who worked out what the waggle dance means?'],
  },
  {
    name: 'tides.md',
    text: `# Tides

The water of the oceans rises and falls twice in a little more than a day. The moon pulls more strongly at the near side of the earth than at the far side, and so there are two bulges of water, one towards the moon and one away from it, under which the earth turns. When sun and moon pull along one line, at new and full moon, the difference is greatest: a spring tide. At half moon they pull at right angles, which gives a neap tide.`,
    questions: ['Why are there two high tides in a day?', 'When does a spring tide happen?', 'What is a neap tide?'],
  },
  {
    name: 'printing.md',
    text: `# Gutenberg's press

In Mainz, around 1450, Johannes Gutenberg brought together what others had not: single letters cast of lead, tin and antimony in a mould held in the hand, an ink of oil that sticks to metal, and a press like those for wine. His Bible of 42 lines on each page was finished about 1455. Some 180 copies were made, of which 49 are left, not all of them whole.`,
    questions: [
      'Where did Gutenberg invent printing with movable letters?',
      'How many copies of the Gutenberg Bible are left?',
    ],
  },
  {
    name: 'vaccination.md',
    text: `# The first vaccination

Milkmaids who had had cowpox did not fall ill with smallpox. In May 1796 the country doctor Edward Jenner took matter from a sore on the hand of Sarah Nelmes and scratched it into the arm of a boy of eight, James Phipps. Weeks later he gave him smallpox, and nothing happened. The word vaccine comes from vacca, the Latin for cow.`,
    questions: ['Who was the first boy to be vaccinated, and by whom?', 'Where does the word vaccine come from?'],
  },
  {
    name: 'cholera.md',
    text: `# The pump in Broad Street

When cholera killed hundreds in Soho in 1854, most doctors blamed bad air. John Snow marked the deaths on a map and saw that they lay around a public pump in Broad Street. A brewery next to it had hardly any, for its workers drank beer. He had the handle of the pump taken off. Later it was found that a cesspit leaked into the well.`,
    questions: [
      'How did John Snow find the source of the cholera?',
      'Why did the workers of the brewery stay healthy?',
    ],
  },
  {
    name: 'penicillin.md',
    text: `# A spoiled dish

Back from his holidays in September 1928, Alexander Fleming found that mould had fallen into a dish of staphylococci that he had left on his bench, and that around the mould the bacteria were gone. He named what it gave off penicillin. To make enough of it for patients took ten years more, and Howard Florey, Ernst Chain and Norman Heatley at Oxford.`,
    questions: [
      'What did Fleming see in the dish with mould?',
      'Who made penicillin in amounts that could treat patients?',
    ],
  },
  {
    name: 'longitude.md',
    text: `# Harrison's clocks

A ship's latitude can be read from the height of the sun, but its longitude only by comparing the time there with that of a known place. In 1714 the British Parliament offered twenty thousand pounds for a way to do so. John Harrison, a carpenter from Yorkshire, built clocks that neither the rolling of the sea nor heat and cold put wrong. His fourth, like a large watch, lost five seconds on the way to Jamaica.`,
    questions: [
      'How can sailors find their longitude?',
      'What prize did Parliament offer in 1714?',
      'By how many seconds was the watch wrong on the voyage to Jamaica?',
    ],
  },
  {
    name: 'scurvy.md',
    text: `# Lemons against scurvy

On long voyages sailors' gums bled, old wounds opened, and more died of it than in battles. In 1747 James Lind, a surgeon on the Salisbury, gave twelve sick men six different remedies, two men each: cider, vitriol, vinegar, sea water, oranges and lemons, and a paste of garlic and mustard. Those with the fruit were fit for duty within six days. It took the Admiralty until 1795 to have lemon juice given out.`,
    questions: [
      'Which remedy for scurvy worked in the experiment of James Lind?',
      'When was lemon juice given to the navy?',
    ],
  },
  {
    name: 'chess.md',
    text: `# A machine that played chess

The Turk, built by Wolfgang von Kempelen in 1770, was a figure in a robe behind a cabinet of wheels. It beat Napoleon and Benjamin Franklin. Before each game the doors were opened one after the other, to show that nobody was inside; but a strong player sat there on a sliding seat, moving from side to side as the doors opened, and followed the game by magnets under the board.`,
    questions: [
      'What was the secret of the chess machine called the Turk?',
      'Which famous people lost against the Turk?',
    ],
  },
  {
    name: 'rainbow.md',
    text: `# Rainbows

A rainbow is seen with the sun behind one's back. Light enters each drop of rain, is bent, reflected at the back of the drop, and bent again on its way out, red a little less than violet. Most of it comes out at 42 degrees to where it came from, so the bow is part of a circle around the shadow of one's head. In the second, fainter bow light was reflected twice, and its colours are the other way round.`,
    questions: [
      'At which angle does light leave a drop in a rainbow?',
      'Why are the colours of the second rainbow reversed?',
    ],
  },
  {
    name: 'bread.md',
    text: `# Sourdough

Flour and water that stand for some days in a warm place begin to bubble: wild yeasts make gas, which lets the bread rise, and lactic bacteria make it sour. Feed the starter each day with as much flour and water again. For a loaf take a fifth of starter, let the dough rest for twelve hours, fold it now and then instead of kneading, and bake it in a closed pot at 240 degrees, the last twenty minutes without the lid.`,
    questions: ['How hot should the oven be for a sourdough loaf?', 'What makes sourdough sour?'],
  },
  {
    name: 'tea.md',
    text: `# Green and black tea

Both come from the same shrub, Camellia sinensis. Leaves for green tea are heated soon after they are picked, by steam in Japan or in a pan in China, so that they stay green. For black tea they wither, are rolled so that their juice comes out, and turn brown in the air before they are dried. Green tea is best with water of 70 to 80 degrees; boiling water makes it bitter.`,
    questions: ['Do green tea and black tea come from different plants?', 'Why does green tea get bitter?'],
  },
  {
    name: 'coffee.md',
    text: `# The story of coffee

It is told that Kaldi, a goatherd in Ethiopia, saw his goats jump about after eating red berries. From there the drink came to Yemen, where Sufis drank it to stay awake at night, and by the port of Mokha into the world. In Vienna the first coffee house opened after the siege of 1683, when the Turks had left sacks of beans behind.`,
    questions: ['Who discovered coffee by watching goats?', 'From which port was coffee shipped to the world?'],
  },
  {
    name: 'paper.md',
    text: `# How paper came to Europe

In China, Cai Lun, an official at the court, told the emperor in the year 105 of a way to make sheets of bark, hemp, rags and old nets. After the battle of Talas in 751, prisoners brought the craft to Samarkand. From Baghdad it went by way of Egypt and Morocco to Spain, where there was a mill at Játiva before 1150.`,
    questions: ['Who first described how to make paper?', 'Where was the first paper mill in Spain?'],
  },
  {
    name: 'zero.md',
    text: `# Nothing as a number

The Babylonians left a gap, and later wrote two wedges, where a place had no digit, but they did not calculate with it. Brahmagupta did in 628: a number less itself is nothing, he wrote, and said what comes of adding it or multiplying by it. By dividing by it he went wrong. Fibonacci brought the nine figures of the Indians, and the sign zephirum, to Europe in 1202.`,
    questions: ['Who gave the first rules for calculating with zero?', 'Who brought Indian numerals to Europe?'],
  },
  {
    name: 'volcano.md',
    text: `# The year without a summer

In April 1815 Tambora, on the island of Sumbawa, blew a third of its height away. Ash and sulphur in the upper air dimmed the sun all over the world. In 1816 it snowed in New England in June, and grain rotted in the fields of Europe. Kept indoors by the rain on Lake Geneva, Mary Shelley began to write Frankenstein.`,
    questions: [
      'Which eruption caused the year without a summer?',
      'Where was Mary Shelley when she began Frankenstein?',
    ],
  },
  {
    name: 'enigma.md',
    text: `# Breaking Enigma

The German machine turned each letter into another by rotors that moved on with every key, so that no two letters were changed alike. It could never turn a letter into itself, though, which gave it away. Marian Rejewski in Warsaw reconstructed its wiring in 1932. At Bletchley Park, Alan Turing and Gordon Welchman built the bombe, which tried the settings by a guess of some words of the message, a crib.`,
    questions: [
      'What was the weakness of the Enigma machine?',
      'Who reconstructed the wiring of Enigma before the war?',
    ],
  },
  {
    name: 'moon.md',
    text: `# The landing of Apollo 11

On 20 July 1969 the lunar module Eagle came down in the Sea of Tranquility with fuel for less than half a minute left, because Neil Armstrong flew on over a crater full of boulders. The computer had warned of too much to do, with the codes 1202 and 1201, but it dropped what was less important and went on. Michael Collins stayed in orbit.`,
    questions: ['What did the alarm 1202 of the lunar module mean?', 'Which astronaut of Apollo 11 did not land?'],
  },
  {
    name: 'glass.md',
    text: `# Murano

In 1291 Venice ordered its glassmakers to move to the island of Murano, because their furnaces had set fire to houses of wood. There they could also be watched: who left the republic with the secrets of the craft was threatened with death. Angelo Barovier made cristallo there about 1450, a glass as clear as rock crystal, by manganese and the ashes of plants that grow in salt.`,
    questions: [
      'Why did Venetian glassmakers have to move to Murano?',
      'Who invented the clear glass called cristallo?',
    ],
  },
  {
    name: 'tulips.md',
    text: `# Tulip mania

In the winter of 1636 people in Haarlem sold bulbs that were still in the ground, on paper, in taverns. For one Semper Augustus, white with red flames, as much was asked as for a house on a canal. In February 1637 nobody came to an auction, and prices fell within days. The flames that were wanted most came from a virus, which aphids carry.`,
    questions: ['What caused the flames of the most expensive tulips?', 'How much did a bulb of Semper Augustus cost?'],
  },
  {
    name: 'dynamite.md',
    text: `# Alfred Nobel

Nitroglycerine explodes when it is shaken; it killed Nobel's brother Emil in 1864. Soaked up by kieselguhr, an earth made of the shells of diatoms, it became a dough that could be carried and was set off only by a cap. He called it dynamite. When another brother died and a newspaper by mistake wrote that the merchant of death was dead, he is said to have thought of his prizes.`,
    questions: ['How did Nobel make nitroglycerine safe to carry?', 'Why did Alfred Nobel found his prizes?'],
  },
  {
    name: 'octopus.md',
    text: `# Octopuses

An octopus has three hearts: two pump blood through the gills, one through the body. Its blood is blue, because it carries oxygen with copper instead of iron. Two thirds of its nerve cells are in its arms, which can taste and decide for themselves. It changes the colour and even the roughness of its skin within a second, though it sees no colours.`,
    questions: ['How many hearts does an octopus have?', 'Why is the blood of an octopus blue?'],
  },
  {
    name: 'monarch.md',
    text: `# The journey of the monarch

Every autumn millions of monarch butterflies fly from Canada to a few mountains in Mexico, up to four thousand kilometres, where they hang in fir trees until March. None of them has been there before: those that fly north in spring die on the way, and it takes four generations to come back. They steer by the sun and a clock in their feelers.`,
    questions: ['Where do monarch butterflies spend the winter?', 'How do monarchs find their way?'],
  },
  {
    name: 'fermat.md',
    text: `# Fermat's margin

Around 1637 Pierre de Fermat wrote beside a problem of Diophantus that no cube is the sum of two cubes, nor any higher power of two such powers, and that the margin was too narrow for his wonderful proof. None was found for 358 years. Andrew Wiles worked at it for seven years in secret, in his attic, told it in Cambridge in 1993, found a gap, and closed it with Richard Taylor in 1994.`,
    questions: ['Who proved the last theorem of Fermat?', 'Why did Fermat not write down his proof?'],
  },
  {
    name: 'semaphore.md',
    text: `# The telegraph of Chappe

From 1794 towers with wooden arms stood on the hills of France, each in sight of the next. A man looked through a telescope at the tower before, and set his own arms alike. A sign went the 230 kilometres from Paris to Lille in some minutes, if there was no fog. Two bankers of Bordeaux bribed an operator in 1834 to hide the prices of the stock exchange among the errors.`,
    questions: [
      'How did the optical telegraph of Claude Chappe work?',
      'What did the bankers of Bordeaux bribe an operator to do?',
    ],
  },
  {
    name: 'velcro.md',
    text: `# Burrs

After a walk in the Alps in 1941 George de Mestral looked at the burrs of burdock in the coat of his dog under a microscope. Each had hundreds of small hooks, which held on to anything with loops. It took him ten years to have such hooks woven of nylon. The name Velcro is made of velours and crochet, velvet and hook.`,
    questions: ['What gave de Mestral the idea of Velcro?', 'What does the name Velcro mean?'],
  },
  {
    name: 'install.md',
    text: `# The pump controller

## Installing

Switch off the mains, open the cover, and connect the brown wire to L, the blue one to N. The yellow and green wire goes to the screw at the housing.

## Error codes

\`\`\`
E17  no water: open the valve, then press RESET
E42  motor too hot: let it cool down for an hour
E88  memory damaged: send it in
\`\`\`

## Warranty

Five years from the day on the receipt, but not for damage by frost.`,
    questions: ['What does E42 mean?', 'Which wire is connected to L?', 'How long is the warranty of the controller?'],
  },
  {
    name: 'kontakt.md',
    text: `# Öffnungszeiten

Das Büro in München ist montags bis freitags von neun bis siebzehn Uhr geöffnet, am Gründonnerstag nur bis Mittag. Schlüssel für den Fahrradkeller gibt Frau Weiß im zweiten Stock aus.`,
    questions: ['Wer gibt die Schlüssel für den Fahrradkeller aus?', 'Wann ist das Buero in Munchen geöffnet?'],
  },
  {
    name: 'staff.json',
    text: JSON.stringify({
      staff: [
        { name: 'Ada Okafor', role: 'head of maintenance', phone: '555-0117', languages: ['English', 'Igbo'] },
        { name: 'Bruno Keller', role: 'accounts', phone: '555-0123', languages: ['German', 'French'] },
        { name: 'Chiyo Tanaka', role: 'night shift', phone: '555-0190', languages: ['Japanese'] },
      ],
    }),
    questions: ['What is the phone number of Bruno Keller?', 'Who is head of maintenance?'],
  },
]

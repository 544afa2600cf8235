"""
The notes of a recording
========================

A spectrogram in parts that are notes, and each note back to sound. The shares of all parts add up to 1 at every time
and frequency, so that the sounds add up to the recording.

Reads 'Mary had a little lamb' on a piano, `mary_piano.wav` (CC0), where it is at hand, see `datasets.local_archive`;
otherwise a tune is generated. Writes notes.png and a .wav file for each part.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.io import wavfile
from scipy.signal import ShortTimeFFT, get_window

import partwise as pw


def generate(rate=8000):
    """The same tune: E D C D E E E, each note with overtones that die away."""
    pitches = {"C": 261.6, "D": 293.7, "E": 329.6}
    t = np.arange(round(4.2 * rate)) / rate
    sound = np.zeros_like(t)
    for number, name in enumerate("EDCDEEE"):
        since = t - 0.55 * number
        tone = sum(
            np.sin(2 * np.pi * k * pitches[name] * since) * np.exp(-(2 + k) * since.clip(0)) / k for k in range(1, 6)
        )
        sound += np.where(since >= 0, tone, 0)
    return rate, sound + 1e-3 * np.random.default_rng(0).normal(size=t.size)


path = pw.datasets.local_archive("mary_spectrogram")
if path is None:
    print("mary_piano.wav is not here (set PARTWISE_DATA to the folder that holds it): a generated tune stands in")
rate, sound = generate() if path is None else wavfile.read(path.with_name("mary_piano.wav"))
sound = sound / np.abs(sound).max()

# %%
# Magnitudes of the spectrogram, times x frequencies, in as many parts as there are notes, by KL.
window = 1024 if rate > 10000 else 512
transform = ShortTimeFFT(get_window("hann", window), hop=window // 4, fs=rate)
spectrum = transform.stft(sound).T
result = pw.factorize(np.abs(spectrum), 3, loss="kl", init="random", n_init=5, random_state=0)
low = result.H[:, transform.f < 400]  # a note is known by its lowest strong frequency
pitch = np.array([transform.f[np.flatnonzero(part > 0.5 * part.max())[0]] for part in low])
order = np.argsort(pitch)
for k in order:
    print(f"part {k + 1}: {pitch[k]:.0f} Hz, {result.shares[k]:.0%} of the magnitudes")

# %%
# Each part takes its share of the complex spectrogram, which is then inverted.
model = result.reconstruct() + 1e-12
sounds = []
for number, k in enumerate(order):
    share = np.outer(result.W[:, k], result.H[k]) / model
    sounds.append(transform.istft((share * spectrum).T, k1=sound.size))
    loud = np.clip(sounds[-1] / np.abs(sound).max(), -1, 1)
    wavfile.write(f"note_{number + 1}.wav", rate, np.round(32767 * loud).astype(np.int16))
rest = np.linalg.norm(sum(sounds) - sound) / np.linalg.norm(sound)
print(f"the notes add up to the recording, to {rest:.0e}")

figure = Figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
times = np.arange(len(spectrum)) * transform.delta_t
levels = 20 * np.log10(np.abs(spectrum).T / np.abs(spectrum).max() + 1e-4)
left.imshow(levels, origin="lower", aspect="auto", extent=(0, times[-1], 0, rate / 2), cmap="magma", vmin=-70)
left.set(title="the recording, dB", xlabel="seconds", ylabel="Hz", ylim=(0, 2500))
for number, k in enumerate(order):
    curve = result.W[:, k] / result.W.max(axis=0)[k]
    right.fill_between(times, number, number + 0.85 * curve, color=["#2b6cb0", "#2f855a", "#c05621"][number], alpha=0.8)
right.set_yticks(np.arange(3) + 0.3, [f"{pitch[k]:.0f} Hz" for k in order])
right.set(title="when each part sounds", xlabel="seconds")
right.spines[["top", "right"]].set_visible(False)
figure.savefig("notes.png", dpi=110)
assert np.all(np.abs(pitch[order] / [262, 294, 330] - 1) < 0.06)
assert rest < 1e-6

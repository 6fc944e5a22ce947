"""The words of the field and of everyday life that mean nearly the same.

Two tables, in the reader's spelling; :mod:`laureate.catalogue.words` brings them to the form in which words are
compared.

``COMPOUNDS``: several words that are one term, and its short form. Both papers and questions get the short form too,
so ``GAN`` finds "generative adversarial network" and the other way round.

``GROUPS``: words that a question may use for one another. A group widens a question; the word that was typed always
counts more than its substitutes. ``a > b`` widens one way only: a person who types "chess" may mean planning, one who
types "planning" hardly chess.
"""

import functools
import re
from collections.abc import Iterator

from laureate.catalogue.words import forms, raw_words, stem

__all__ = ["analyse", "analysed", "compounds", "substitutes"]

COMPOUNDS = """
gan: generative adversarial network
gan: generative adversarial net
vae: variational autoencoder
vae: variational auto encoder
vae: variational auto-encoder
rl: reinforcement learning
irl: inverse reinforcement learning
marl: multi agent reinforcement learning
nas: neural architecture search
nas: architecture search
cnn: convolutional neural network
cnn: convolutional network
cnn: conv net
cnn: convolution network
rnn: recurrent neural network
rnn: recurrent network
rnn: recurrent net
gnn: graph neural network
gnn: graph network
gcn: graph convolutional network
gcn: graph convolution network
mlp: multi layer perceptron
mlp: multilayer perceptron
lstm: long short term memory
nlp: natural language processing
nmt: neural machine translation
mt: machine translation
asr: automatic speech recognition
asr: speech recognition
asr: speech to text
tts: text to speech
tts: speech synthesis
qa: question answering
vqa: visual question answering
ner: named entity recognition
kd: knowledge distillation
ssl: self supervised learning
selfsupervis: self supervised
selfsupervis: self supervision
semisupervis: semi supervised
ood: out of distribution
dp: differential privacy
dp: differentially private
fl: federated learning
sgd: stochastic gradient descent
mcmc: markov chain monte carlo
hmc: hamiltonian monte carlo
mcts: monte carlo tree search
mpc: model predictive control
pde: partial differential equation
ode: ordinary differential equation
sde: stochastic differential equation
ntk: neural tangent kernel
gp: gaussian process
bnn: bayesian neural network
bnn: bayesian network
ebm: energy based model
ebm: energy model
rbm: restricted boltzmann machine
dpp: determinantal point process
dro: distributionally robust optimisation
erm: empirical risk minimisation
nmf: nonnegative matrix factorisation
pca: principal component analysis
svd: singular value decomposition
ot: optimal transport
mi: mutual information
abc: approximate bayesian computation
sbi: simulation based inference
sbi: likelihood free inference
es: evolution strategy
es: evolution strategies
bo: bayesian optimisation
hpo: hyperparameter optimisation
hpo: hyperparameter tuning
ann: artificial neural network
snn: spiking neural network
dnn: deep neural network
nn: neural network
llm: large language model
lm: language model
mlm: masked language model
bc: behavioural cloning
il: imitation learning
il: learning from demonstration
fsl: few shot learning
fewshot: few shot
zeroshot: zero shot
oneshot: one shot
cl: continual learning
cl: lifelong learning
mtl: multi task learning
multitask: multi task
multiagent: multi agent
multimodal: multi modal
uda: unsupervised domain adaptation
da: domain adaptation
dg: domain generalisation
bptt: backpropagation through time
rtrl: real time recurrent learning
bn: batch normalisation
bn: batch norm
bn: batchnorm
fid: frechet inception distance
ct: computed tomography
mri: magnetic resonance imaging
eeg: electroencephalography
ehr: electronic health record
ehr: medical record
ptq: post training quantisation
qat: quantisation aware training
flop: floating point operation
hjb: hamilton jacobi bellman
pinn: physics informed neural network
wl: weisfeiler lehman
ctr: click through rate
finetune: fine tune
finetune: fine tuning
finetune: fine tuned
flop: floating point operations
pretrain: pre train
pretrain: pre training
pretrain: pre trained
posttrain: post training
minimax: min max
minmax: min max
nonconvex: non convex
noniid: non iid
wordpiece: word piece
convnet: conv net
timeseries: time series
pointcloud: point cloud
longtail: long tail
longtail: long tailed
labelnoise: label noise
labelnoise: noisy label
labelnoise: wrong label
labelnoise: mislabelled
domainshift: domain shift
distributionshift: distribution shift
distributionshift: distributional shift
distributionshift: covariate shift
overfit: over fit
overparameteris: over parameterised
overparameteris: overparameterised
overparameteris: overparametrised
"""

GROUPS = """
image, picture, photo, photograph
photo > image
camera > image, visual
pixel > image
scan > image, medical
x-ray > medical, image
face > facial
video, movie, clip, footage, film
frame > video
speech, voice, spoken, speak, talk, utterance
audio, sound, acoustic
music > audio
text, document, sentence, article
word > text, token
token, wordpiece, subword
translation, translate, nmt, mt
language > nlp, text
multilingual, crosslingual, language
chatbot, dialog, conversation, assistant
question, qa, query
summary, summarise
code, program, software, source
bug > program, code
compiler > program, compilation
formula, equation, expression, mathematics
proof, theorem, prover
robot, robotics, manipulator, arm, gripper, manipulation
robot > control
drone > robot, control
car, vehicle, driving, traffic, road
game, atari, player
chess > game, planning
agent, policy, rl
reward, return, incentive
sparse reward > exploration
explore, exploration, curiosity, novelty, intrinsic
plan, planning, lookahead
demonstration, expert, imitate, bc, il
logged, offline, batch, historical, fixed
safe, safety, constraint, risk, caution, danger
cautious > risk, conservative, pessimistic
disaster > risk, worst, catastrophic
delay, late, lag, latency
goal, target, objective
subgoal, subtask, skill, option
hierarchy, option, subgoal
teamwork, cooperate, multiagent, collaborate, coordinate, team
opponent > game, adversary
graph, network, node, edge, link, relational
gnn, gcn, messagepassing
node > graph
molecule, drug, chemistry, compound
protein, amino, sequence, structure
gene, genome, dna, mutation, cancer
tumor, cancer
patient, clinical, medical, hospital, health, doctor
treatment, dose, intervention, therapy
brain, neuron, cortex, neuroscience, neural
spike, spiking, snn
weather, climate
fluid, flow, navierstokes, turbulence
mesh, triangle
cloth, deformable
simulate, simulator, simulation, surrogate, emulate
surrogate, approximate, emulator
pde, differential, equation
ode, continuous-time, dynamics
dynamics, dynamical, trajectory, physics
chaos, chaotic
pendulum > hamiltonian, physics, mechanics
energy > hamiltonian, conserve
conserve, conservation, hamiltonian
finance, price, option, stock, portfolio, asset
derivative > gradient
dimension, dimensional
sample, draw, mcmc, sampler
posterior, bayesian, inference
likelihood-free > simulator, abc, implicit
ising, spin, boltzmann, potts
discrete, categorical, binary, integer
category > categorical, class
gradient, derivative
backprop, backpropagation, gradient
unroll, bptt, truncated
memory, ram, vram, storage
gpu > memory, hardware
memory > storage, checkpoint
recompute, checkpointing, rematerialisation
fast, speed, quick, accelerate, speedup, efficient
slow > fast, speedup, accelerate
efficient, cheap, lightweight, fast, cost
expensive > cost, efficient, cheap
small, tiny, compact, compress, lightweight
shrink > compress, prune, small
compress, compression, shrink
prune, pruning, sparse, sparsity, lotteryticket
remove > prune, delete
delete, remove, forget, unlearn
quantise, quantisation, bit, lowbit, precision
4-bit > quantise
1-bit > binary, binarise
binarise, binary
phone > mobile, edge, device
mobile, edge, device, phone, embedded
flop, compute, budget
distil, distillation, teacher, student, kd
ensemble, committee, average
uncertain, confidence, calibration, calibrate
overconfident > calibrate, uncertain, confidence
trust > confidence, uncertain
confident > confidence, calibrate
guarantee > certify, prove, coverage, bound
interval, coverage, conformal
error-bar > uncertain, confidence, variance
anomaly, outlier, novelty, ood, abnormal, defect
unseen, unknown, novel, ood, unfamiliar
attack, adversary, perturbation, fool, hacker
poison, backdoor, trojan, trigger
defense, robust, protect
steal, theft, extraction, copy, stolen
privacy, dp, confidential, secret, personal
leak > privacy, reconstruct, inversion
federated, decentralised, distributed, client, silo
server > federated, distributed
worker, node, machine, peer, client
gossip, decentralised, peer
byzantine, malicious, garbage, faulty
communication, bandwidth, message
fair, discrimination, demographic, unbiased, gender
bias, spurious, shortcut, confounder, skew
shortcut, spurious, bias
causal, counterfactual, intervention, cause, confounder
what-if > counterfactual
explain, interpret, attribution, saliency, understand
understand > explain, interpret, analysis
heatmap > saliency, attribution
importance, relevance, attribution
shapley, gametheory
neuron, unit, activation
feature, representation, embedding, descriptor
embedding, vector, representation
latent, hidden, code
disentangle, factor, independent
unlabel, unsupervis, selfsupervis
unannotated > unlabel, unsupervis
annotation, label, annotator, annotate
mistake, wrong, error, incorrect, noise
wrong > noise, corrupt
noise, corrupt, noisy
mislabel > labelnoise, noise
contrastive, siamese, infonce
negative > contrastive
pretext, selfsupervis
collapse > degenerate, trivial
cluster, group, partition
imbalance, longtail, rare, minority, skewed
rare > longtail, imbalance, tail
few-shot, fewshot, scarce, handful, few
scarce, few, limited, little, low-resource
few > fewshot
new > novel
adapt, adaptation, transfer
transfer, adapt, reuse
metalearn, meta-learning, maml, learning-to-learn
meta > maml
continual, lifelong, incremental, sequential, forget
forget, catastrophic, continual
remember, memory, recall
longterm, long-range, dependency
multitask, task
domain, shift, environment
shift, drift, distributionshift
extrapolate, generalis, ood
compositional, systematic, composition
overfit, generalis, memoris, regularis
memoris, overfit
generalis, bound
overparameteris, width, wide
implicit, regularis, bias
sharpness, flat, curvature, hessian
optimis, optimiser, sgd, adam, descent
learning rate, step-size, stepsize, schedule
hyperparameter, tune, hpo, automl
automl, nas, automatic
architecture, design, layout, topology, wiring
layout > architecture
supernet, once-for-all, nas
normalis, bn, batchnorm
initialis, initialisation, untrained
untrained > initialis, random
augment, mixup, crop, transformation
mixup, mix, interpolate
dropout, regularis
attention, transformer, selfattention
transformer, bert, attention
bert > pretrain, transformer, language
gpt > language, transformer
long > length, range
convolution, cnn, filter, kernel
segment, segmentation, mask, pixel
mask > segment
detect, detector, localise, localisation
box > detect, object
locate, localise, where, position
pose, keypoint, skeleton, joint
skeleton > action, pose
action, activity, gesture
lidar, pointcloud, 3d
3d, shape, voxel, mesh, three-dimensional
voxel > 3d
scene, room, indoor
render, rendering, graphics
depth > 3d
caption, describe
color, colorisation, colour
superresolution, upsample, resolution
denoise, restoration, noise
inpaint, complete, fill, missing
missing, impute, incomplete, partial
generate, synthesis, create, produce
gan, adversarial, generate, discriminator
diffusion, score, denoise
flow, invertible, normalising
ebm, energy
vae, autoencoder
edit, manipulate, control, change
style, appearance
sketch, drawing, doodle
retrieval, search, lookup, nearest, index
recommend, recommendation, recommender, collaborative
product > item, recommend, retrieval
rank, ranking, order
click > recommend, ctr
tabular, table, spreadsheet, column
table > tabular
forecast, predict, prediction, future
timeseries, temporal, sequence, series
irregular, asynchronous, continuous-time
sensor > timeseries
event, hawkes, pointprocess
transport, wasserstein, sinkhorn, ot
barycenter, average
sparse, lasso, shrinkage, compressed-sensing
measurement > compressed-sensing, inverse, observation
inverse, reconstruction, recover
recover, reconstruct, reconstruction
lowrank, factorisation, decomposition, matrix
decomposition, factorisation
select, selection, choose, pick
variable > feature
falsediscovery, fdr, knockoff
active, query, acquisition
bandit, exploration, regret
regret, bandit
equilibrium, nash, game, minimax, saddle
combinatorial, routing, salesman, sat, discrete
logic, rule, symbolic, reasoning
reason, reasoning, deduction
symbolic, neurosymbolic
knowledge, fact, triple, entity
human, people, person
human > person
feedback, preference
symmetry, equivariant, invariant, rotation, group
rotate, rotation, equivariant
hyperbolic, curved, poincare, tree-like
manifold, geometry, riemannian
benchmark, testbed, suite, dataset, evaluation
compare > benchmark, evaluation, study
test > evaluation, benchmark
library, toolkit, package, framework
theory, prove, bound, analysis
dna > gene
verify, certify, certificate, verification
bound > certify
tree, hierarchical
hash, sketch, bloom
membership, bloom
hardware, accelerator, chip
curriculum, teacher, difficulty, order
difficulty, hard, hardness
mixture, expert, moe
expert > moe
curse-of-dimensionality, dimension
brain-computer, eeg
background, distract, irrelevant, nuisance
distract, distractor, irrelevant
"""


def _sequence(phrase: str) -> tuple[str, ...]:
    """A phrase as the forms that are compared, words of glue kept, hyphens opened."""
    return tuple(stem(part) for word in raw_words(phrase) for part in word.split("-"))


def _token(phrase: str) -> str:
    """A phrase as the one form that stands for it: its short form, or its words written together."""
    parts = _sequence(phrase)
    if len(parts) == 1:
        return parts[0]
    known = dict(_written())
    return known.get(parts) or stem("".join(part for word in raw_words(phrase) for part in word.split("-")))


@functools.cache
def _written() -> tuple[tuple[tuple[str, ...], str], ...]:
    lines = (line.partition(":") for line in COMPOUNDS.strip().splitlines())
    return tuple((_sequence(phrase), stem(short)) for short, _, phrase in lines)


# Programs, models, data sets and environments that people name instead of their problem.
PRODUCTS = """
stylegan, stylegan2, stylegan3, dcgan, progan, pggan > gan, generat, image
pix2pix, cyclegan, spade > gan, image, translation
wgan, wgan-gp > gan, discriminator, critic
ddpm, guided-diffusion, diffusers, stablediffusion > diffusion, sampl, generat
realnvp, glow, nflows > flow, density, invertible
yolo, yolov3, yolov4, yolov5, yolov8, ultralytics, detectron, detectron2, mmdetection, ssd300 > detect, object, box
maskrcnn, unet, deeplab, mmsegmentation > segment, image
resnet, resnet18, resnet50, vgg, vgg16, efficientnet, mobilenet, densenet, timm > cnn, image, classify
vit, deit, swin > transformer, image
bert, roberta, albert, distilbert, electra, sbert > bert, language, pretrain
gpt2, gpt3, llama > language, generat, transformer
huggingface, simpletransformers, spacy, fairseq, allennlp > nlp, text, language
opennmt, marian, sacrebleu > translation
tacotron, wavenet, waveglow, melgan, hifigan, coqui > tts, speech
wav2vec, deepspeech, espnet, kaldi, whisper > speech, asr, audio
ppo, trpo, a2c, a3c, impala > policy, rl, actor
sac, td3, ddpg > actor, critic, rl, continuous
dqn, rainbow, c51 > q-learning, value, rl, atari
sb3, baselines3, stable-baselines, stable-baselines3, rllib, tianshou, cleanrl, acme > rl, policy, agent
d3rlpy, d4rl, cql, bcq > offline, rl
dreamer, planet, muzero, alphazero, mcts > planning, model-based, rl
gym, gymnasium, openai-gym, pettingzoo, unity, ml-agents, minigrid, carracing > rl, environment, agent
mujoco, pybullet, brax, isaac, isaacgym, dm-control > simulator, physics, control, rl
halfcheetah, cartpole, cart-pole, ant-v2, walker2d, lunarlander > control, rl, continuous
montezuma, pitfall > exploration, sparse, atari
carla, highway-env > driving, rl
xgboost, lightgbm, catboost, gbdt, randomforest > tabular, tree, boosting
sklearn, scikit, scikit-learn > tabular, classifier
imblearn, smote > imbalance, class
pytorch-geometric, torch-geometric, pyg, dgl, deepgraph > gnn, graph
graphsage, gat, gcn > gnn, node, graph
rdkit, deepchem, chemprop, qm9, moleculenet > molecule, property
alphafold, rosetta, pdb > protein, structure
pointnet, kitti, open3d, modelnet > pointcloud, 3d, lidar
nerf, instant-ngp > 3d, view, render, scene
flwr, flower, fedavg, fedml, leaf > federated, client
opacus, tff > privacy, dp
horovod, ddp, deepspeed, nccl > distributed, worker, communication
optuna, hyperopt, raytune, ray-tune > hyperparameter, tune
nni, autokeras, darts, enas, nasbench > nas, architecture
tflite, onnx, tensorrt, coreml > quantise, deploy, mobile, inference
torchattacks, foolbox, cleverhans, autoattack, pgd, fgsm > attack, adversary, robust
gradcam, grad-cam, captum, lime, shap > saliency, attribution, explain
simclr, moco, byol, simsiam, swav, barlow > contrastive, selfsupervis, representation
maml, protonet, prototypical, learn2learn > fewshot, meta, adapt
ewc, avalanche > continual, forget
pymc, pymc3, stan, numpyro, pyro, emcee > bayesian, mcmc, posterior, sampling
torchdiffeq, diffrax, neural-ode, neuralode > ode, solver
deepxde, modulus, fenics, openfoam > pde, simulation, physics
econml, dowhy, causalml, deepiv > causal, treatment
cifar, cifar10, cifar100, imagenet, mnist, celeba, coco > image
librispeech, ljspeech > speech
squad, glue, mnli, wikitext > text, language
"""


def _groups() -> Iterator[tuple[list[str], list[str]]]:
    for line in (GROUPS.strip() + PRODUCTS.rstrip()).splitlines():
        left, arrow, right = line.partition(">")
        sources, targets = ([word.strip() for word in part.split(",")] for part in (left, right if arrow else left))
        yield sources, targets


@functools.cache
def compounds() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """First form -> [(all forms of the phrase, its short form)]; phrases of ``GROUPS`` are terms as well."""
    table: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    # A phrase may have two short forms, and a long word one.
    phrases = dict.fromkeys(_written())
    for sources, targets in _groups():
        phrases |= {(_sequence(word), _token(word)): None for word in (*sources, *targets) if re.search(r"[ -]", word)}
    for parts, short in phrases:
        if parts != (short,):
            table.setdefault(parts[0], []).append((parts, short))
    return table


@functools.cache
def substitutes() -> dict[str, frozenset[str]]:
    """Form -> the forms a question with it may also mean."""
    table: dict[str, set[str]] = {}
    for sources, targets in _groups():
        meant = [_token(word) for word in targets]
        for source in map(_token, sources):
            table.setdefault(source, set()).update(word for word in meant if word != source)
    return {source: frozenset(found) for source, found in table.items()}


def analyse(text: str) -> list[str]:
    """The words of a text in the form in which they are compared: stems, and short forms of the terms they make.

    >>> analyse("How do I train generative adversarial networks?")
    ['train', 'generat', 'adversary', 'network', 'gan']
    """
    return analysed(raw_words(text))


def analysed(words: list[str]) -> list[str]:
    """The same for a text that is already in words."""
    table = compounds()
    found: list[str] = []
    opened: list[str] = []
    for word in words:
        compared, parts = _both(word)
        found += compared
        opened += parts
    for place, first in enumerate(opened):
        if first in table:
            found += [short for parts, short in table[first] if tuple(opened[place : place + len(parts)]) == parts]
    return found


@functools.lru_cache(maxsize=65536)
def _both(word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return forms(word), tuple(stem(part) for part in word.split("-"))
